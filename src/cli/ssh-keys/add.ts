// millrace ssh-keys add: a public key you already have.

import { readFileSync } from 'node:fs';
import { Command } from 'commander';
import { createClient } from '#cli/client.ts';
import { CliError } from '#cli/output.ts';
import type { SshKey } from '#cloud/schema.ts';

export function addCommand(): Command {
  return new Command('add')
    .description('add a public key')
    .argument('<name>')
    .argument('<file>', 'e.g. ~/.ssh/id_ed25519.pub')
    .action(async (name: string, file: string) => {
      const { data } = await createClient('any').post<{ data: SshKey }>('/api/v1/ssh-keys', {
        name,
        public_key: read(file),
      });
      console.log(`Added ${data.name} (${data.id}).`);
    });
}

function read(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    throw new CliError(`${file} can't be read.`);
  }
}
