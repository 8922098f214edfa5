// millrace ssh-keys generate: creates a key pair. The private key is saved on this computer only.

import { closeSync, mkdirSync, openSync, rmSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import { Command } from 'commander';
import { createClient } from '#cli/client.ts';
import { CliError, report } from '#cli/output.ts';
import type { SshKey } from '#cloud/schema.ts';
import { toReason } from '#lib/start-error.ts';
import { toPrivateKeyFile } from './private-key-file.ts';

export function generateCommand(): Command {
  return new Command('generate')
    .description('Generate a key pair and save the private key on this computer')
    .argument('<name>', 'Name for the key')
    .option('--out <file>', 'File for the private key (default: ~/.ssh/<name>.pem)')
    .option('--json', 'Print JSON, without the private key')
    .action(generate);
}

async function generate(name: string, options: { out?: string; json?: true }): Promise<void> {
  const path = options.out ?? toPrivateKeyFile(name);
  const client = createClient('any');
  if (options.out === undefined) mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const file = reserve(path);
  try {
    const { data } = await client.post<{ data: SshKey }>('/api/v1/ssh-keys', { name });
    const { private_key: privateKey, ...key } = data;
    writeSync(file, privateKey ?? '');
    report({ ...key, file: path }, `Saved the private key to ${path}.`, options.json);
  } catch (error) {
    rmSync(path, { force: true });
    throw error;
  } finally {
    closeSync(file);
  }
}

/** Called before the key exists: a private key that can't be saved would be lost. */
function reserve(path: string): number {
  try {
    return openSync(path, 'wx', 0o600);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') {
      throw new CliError(
        `${path} already exists. Choose another name, or another file with --out.`,
      );
    }
    throw new CliError(`Can't write ${path}: ${toReason(error)}.`);
  }
}
