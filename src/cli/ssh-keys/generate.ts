// millrace ssh-keys generate: a new pair; the private key is saved here and nowhere else.

import { closeSync, openSync, rmSync, writeSync } from 'node:fs';
import { Command } from 'commander';
import { createClient } from '#cli/client.ts';
import { CliError } from '#cli/output.ts';
import type { SshKey } from '#cloud/schema.ts';
import { toPemName } from './pem-name.ts';

export function generateCommand(): Command {
  return new Command('generate')
    .description('generate a key pair and save the private key')
    .argument('<name>')
    .option('--out <file>', 'where to save it; <name>.pem by default, - for odd characters')
    .action(async (name: string, { out = toPemName(name) }: { out?: string }) => {
      const client = createClient('any');
      const file = reserve(out);
      try {
        const { data } = await client.post<{ data: SshKey }>('/api/v1/ssh-keys', { name });
        writeSync(file, data.private_key ?? '');
      } catch (error) {
        rmSync(out, { force: true });
        throw error;
      } finally {
        closeSync(file);
      }
      console.log(`Saved the private key as ${out}.`);
    });
}

/** Taken before the key is made: a key whose private half has no place to go would be lost. */
function reserve(path: string): number {
  try {
    return openSync(path, 'wx', 0o400);
  } catch (error) {
    const exists = (error as NodeJS.ErrnoException).code === 'EEXIST';
    throw new CliError(exists ? `${path} exists already.` : `${path} can't be written.`);
  }
}
