// millrace batches show.

import { Command } from 'commander';
import { createClient } from '#cli/client.ts';
import { fromSeconds } from '#cli/time.ts';
import { addView } from '#cli/view.ts';
import { findBatch, toErrors, toProgress } from './find.ts';

export function showCommand(): Command {
  const command = new Command('show')
    .description('Show the state, progress, files and errors of a batch')
    .argument('<batch>', 'Id or its first characters, from `millrace batches list`');
  return addView(command, async (wanted: string) => {
    const batch = await findBatch(createClient('any'), wanted);
    const rows = [
      ['Id', batch.id],
      ['Status', batch.status],
      ['Progress', toProgress(batch)],
      ['Endpoint', batch.endpoint],
      ['Created', fromSeconds(batch.created_at)],
      ['Expires', fromSeconds(batch.expires_at)],
      ['Input file', batch.input_file_id],
      ['Output file', batch.output_file_id ?? '-'],
      ['Error file', batch.error_file_id ?? '-'],
    ];
    const text = rows.map(([name, value]) => `${name?.padEnd(12)} ${value}`).join('\n');
    return { data: batch, text, notes: () => toErrors(batch) };
  });
}
