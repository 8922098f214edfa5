// millrace models stand-in.

import { Command } from 'commander';
import { createClient } from '#cli/client.ts';
import { report } from '#cli/output.ts';

export function standInCommand(): Command {
  return new Command('stand-in')
    .description('Let the stand-in answer again for a model whose backends are gone')
    .argument('<id>', 'Model id, from `millrace models list`')
    .option('--json', 'Print JSON')
    .addHelpText(
      'after',
      '\nRequests for a model that had a backend get 503 until it has one again, or until this command is run.',
    )
    .action(async (model: string, { json }: { json?: true }) => {
      const path = `/dashboard/api/backends/${encodeURIComponent(model)}/stand-in`;
      await createClient('session').post(path);
      report({ model }, `The stand-in, a small model, now answers for ${model}.`, json);
    });
}
