// millrace batches cancel.

import { Command } from 'commander';
import { createClient } from '#cli/client.ts';
import { report } from '#cli/output.ts';
import { confirm } from '#cli/prompts.ts';
import type { BatchObject } from '#inference/apis/batches/schema.ts';
import { batchesPath, findBatch } from './find.ts';

export function cancelCommand(): Command {
  return new Command('cancel')
    .description('Cancel a batch; the results so far are kept')
    .argument('<batch>', 'Id or its first characters, from `millrace batches list`')
    .option('--yes', 'Do not ask for confirmation')
    .option('--json', 'Print JSON')
    .action(async (wanted: string, { yes, json }: { yes?: true; json?: true }) => {
      const client = createClient('any');
      const { id } = await findBatch(client, wanted);
      await confirm(`Cancel ${id}? Requests that have not run will not run.`, yes);
      const batch = await client.post<BatchObject>(`${batchesPath}/${id}/cancel`);
      report(batch, `${id} is being cancelled.`, json);
    });
}
