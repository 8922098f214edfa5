// millrace batches: requests in a file, run without a client.

import type { Command } from 'commander';
import { changeCommand, listCommand, nounCommand, viewCommand } from '#cli/noun.ts';
import { toFacts } from '#cli/output.ts';
import { fromSeconds } from '#cli/time.ts';
import type { BatchObject } from '#inference/apis/batches/schema.ts';
import { createCommand } from './create.ts';
import { batches, batchesPath, toErrors, toProgress } from './find.ts';
import { resultsCommand } from './results.ts';

export const batchesCommand = (): Command =>
  nounCommand('batches', 'Run the requests in a file as a batch, at a lower price', [
    createCommand(),
    listCommand(batches, {
      description: 'List the batches of the account, newest first',
      columns: {
        ID: ({ id }) => id,
        STATUS: ({ status }) => status,
        PROGRESS: toProgress,
        ENDPOINT: ({ endpoint }) => endpoint,
        CREATED: ({ created_at }) => fromSeconds(created_at),
        EXPIRES: ({ expires_at }) => fromSeconds(expires_at),
      },
      limited: 'batches',
    }),
    viewCommand(
      batches,
      'show',
      'Show the state, progress, files and errors of a batch',
      (batch) => ({ data: batch, text: describe(batch), notes: () => toErrors(batch) }),
    ),
    resultsCommand(),
    changeCommand(batches, 'cancel', {
      description: 'Cancel a batch; the results so far are kept',
      question: ({ id }) => `Cancel ${id}? Requests that have not run will not run.`,
      async run(client, { id }) {
        const data = await client.post<BatchObject>(`${batchesPath}/${id}/cancel`);
        return { data, text: `${id} is being cancelled.` };
      },
    }),
  ]);

const describe = (batch: BatchObject) =>
  toFacts([
    ['Id', batch.id],
    ['Status', batch.status],
    ['Progress', toProgress(batch)],
    ['Endpoint', batch.endpoint],
    ['Created', fromSeconds(batch.created_at)],
    ['Expires', fromSeconds(batch.expires_at)],
    ['Input file', batch.input_file_id],
    ['Output file', batch.output_file_id],
    ['Error file', batch.error_file_id],
  ]);
