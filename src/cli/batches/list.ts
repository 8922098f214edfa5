// millrace batches list.

import { Command } from 'commander';
import { createClient } from '#cli/client.ts';
import { toTable } from '#cli/output.ts';
import { parseLimit } from '#cli/pages.ts';
import { fromSeconds } from '#cli/time.ts';
import { addView } from '#cli/view.ts';
import { listBatches, toProgress } from './find.ts';

export function listCommand(): Command {
  const command = new Command('list')
    .description('List the batches of the account, newest first')
    .option('--limit <n>', 'Maximum number of batches (default: all)', parseLimit);
  return addView(command, async ({ limit }: { limit?: number }) => {
    const data = await listBatches(createClient('any'), limit);
    const rows = data.map((batch) => [
      batch.id,
      batch.status,
      toProgress(batch),
      batch.endpoint,
      fromSeconds(batch.created_at),
      fromSeconds(batch.expires_at),
    ]);
    const headers = ['ID', 'STATUS', 'PROGRESS', 'ENDPOINT', 'CREATED', 'EXPIRES'];
    return { data, text: toTable('batches', headers, rows) };
  });
}
