// millrace batches results: the results of a batch as they are, a JSON object per line.

import { createWriteStream } from 'node:fs';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { Command } from 'commander';
import { createClient } from '#cli/client.ts';
import { getItem } from '#cli/noun.ts';
import { CliError, toPrintableLines } from '#cli/output.ts';
import { toReason } from '#lib/start-error.ts';
import { batches, hasEnded } from './find.ts';

interface Options {
  errors?: true;
  output?: string;
}

const examples = `
Examples:
  millrace batches results batch_1f3a > results.jsonl
  millrace batches results batch_1f3a --errors --output errors.jsonl

Each line has the custom_id of its request. Results are in the order in which they were ready.`;

export function resultsCommand(): Command {
  return new Command('results')
    .description('Download the results of a batch that has ended, one JSON object per line')
    .argument(...batches.argument)
    .option('--errors', 'Download the requests that failed instead')
    .option('--output <file>', 'Write to this file (default: standard output)')
    .addHelpText('after', examples)
    .action(download);
}

async function download(wanted: string, { errors, output }: Options): Promise<void> {
  const client = createClient('any');
  const batch = await getItem(batches, client, wanted);
  if (!hasEnded(batch)) {
    throw new CliError(
      `${batch.id} is ${batch.status}. Follow it with \`millrace batches show ${batch.id} --watch\`.`,
    );
  }
  const file = errors ? batch.error_file_id : batch.output_file_id;
  if (file === null) {
    throw new CliError(
      `${batch.id} is ${batch.status} and has no ${errors ? 'errors' : 'results'}.`,
    );
  }
  const { body } = await client.getStream(`/v1/files/${file}/content`);
  try {
    if (output !== undefined) await pipeline(body, createWriteStream(output));
    else if (process.stdout.isTTY) await pipeline(toShown(body), process.stdout, { end: false });
    else await pipeline(body, process.stdout, { end: false });
  } catch (error) {
    throw new CliError(`The download was cut off: ${toReason(error)}.`);
  }
}

/** A model's words must not control the terminal. */
async function* toShown(body: Readable): AsyncGenerator<string> {
  for await (const text of body.setEncoding('utf8')) yield toPrintableLines(String(text));
}
