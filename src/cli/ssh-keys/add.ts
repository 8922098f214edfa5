// millrace ssh-keys add: registers a public key that you already have.

import { readFileSync } from 'node:fs';
import { Command } from 'commander';
import { createClient } from '#cli/client.ts';
import { CliError, report } from '#cli/output.ts';
import type { SshKey } from '#cloud/schema.ts';
import { toReason } from '#lib/start-error.ts';

export function addCommand(): Command {
  return new Command('add')
    .description('Add a public key that you already have')
    .argument('<name>', 'Name for the key')
    .argument('<file>', 'Public key file, e.g. ~/.ssh/id_ed25519.pub')
    .option('--json', 'Print JSON')
    .action(async (name: string, file: string, { json }: { json?: true }) => {
      const { data } = await createClient('any').post<{ data: SshKey }>('/api/v1/ssh-keys', {
        name,
        public_key: read(file),
      });
      report(data, `Added SSH key ${data.name} (${data.id}).`, json);
    });
}

function read(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new CliError(`Can't read ${file}: ${toReason(error)}.`);
  }
}
