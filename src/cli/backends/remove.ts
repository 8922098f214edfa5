// millrace backends remove.

import { Command } from 'commander';
import { createClient } from '#cli/client.ts';
import { report } from '#cli/output.ts';
import { confirm } from '#cli/prompts.ts';
import { backendArgument, getBackend, toBackendPath } from './find.ts';

export function removeCommand(): Command {
  return new Command('remove')
    .description('Remove a backend that was added live; its running requests finish first')
    .argument(...backendArgument)
    .option('--yes', 'Do not ask for confirmation')
    .option('--json', 'Print JSON')
    .action(async (wanted: string, { yes, json }: { yes?: true; json?: true }) => {
      const backend = await getBackend(wanted);
      const { id } = backend;
      await confirm(`Remove backend ${id}?`, yes);
      await createClient('session').delete(toBackendPath(backend));
      const text = `${id} gets no new requests. It is removed once its running requests finish.`;
      report({ id }, text, json);
    });
}
