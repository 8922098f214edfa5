// millrace batches create: uploads a file and starts its batch. The server does the work, so the command may be
// interrupted once the batch exists.

import { stat } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { Command } from 'commander';
import { type Client, createClient } from '#cli/client.ts';
import { CliError, report } from '#cli/output.ts';
import { startByteProgress, startStatusProgress } from '#cli/progress.ts';
import type { BatchObject } from '#inference/apis/batches/schema.ts';
import { toReason } from '#lib/start-error.ts';
import { batchesPath, getBatch, hasEnded, toErrors, toProgress } from './find.ts';
import { openUpload, readEndpoint } from './upload.ts';

interface Options {
  window: string;
  watch?: true;
  json?: true;
}

const pollIntervalMs = 500;

const examples = `
Examples:
  millrace batches create requests.jsonl
  millrace batches create requests.jsonl --window 2h --watch

Each line of the file is a request:
  {"custom_id": "1", "method": "POST", "url": "/v1/chat/completions", "body": {"model": "...", "messages": [...]}}

With --watch, Ctrl-C stops watching; the server continues the batch.`;

export function createCommand(): Command {
  return new Command('create')
    .description('Upload a file of requests (.jsonl) and start a batch')
    .argument('<file>', 'File with one request per line')
    .option('--window <time>', 'Time until what has not run is given up, up to 30d', '24h')
    .option('--watch', 'Show the progress until the batch has ended')
    .option('--json', 'Print JSON')
    .addHelpText('after', examples)
    .action(create);
}

async function create(path: string, { window, watch, json }: Options): Promise<void> {
  const client = createClient('any');
  const endpoint = await readEndpoint(path);
  const file = await upload(client, path);
  const started = await client.post<BatchObject>(batchesPath, {
    input_file_id: file,
    endpoint,
    completion_window: window,
  });
  if (!watch) {
    const hint = `Follow it with \`millrace batches show ${started.id} --watch\`.`;
    return report(started, `Created ${started.id}. ${hint}`, json);
  }
  const ended = await follow(client, started);
  report(ended, `${ended.id} is ${ended.status}: ${toProgress(ended)}.`, json);
  if (ended.status !== 'completed') throw new CliError(toErrors(ended).join('\n'));
}

async function upload(client: Client, path: string): Promise<string> {
  const { size } = await stat(path).catch((error: unknown) => {
    throw new CliError(`Can't read ${path}: ${toReason(error)}.`);
  });
  const progress = await startByteProgress(size, {
    onInterrupt: 'Nothing was started: the upload was interrupted.',
  });
  try {
    const body = openUpload(path, size, (done) => progress.show(done));
    const { id } = await client.postLong<{ id: string }>('/v1/files', body);
    return id;
  } finally {
    progress.end();
  }
}

async function follow(client: Client, started: BatchObject): Promise<BatchObject> {
  const progress = await startStatusProgress({
    onInterrupt: `Stopped watching. The server continues the batch. To cancel: millrace batches cancel ${started.id}`,
  });
  try {
    for (let batch = started; ; ) {
      progress.show(`${batch.status}: ${toProgress(batch)}`);
      if (hasEnded(batch)) return batch;
      await sleep(pollIntervalMs);
      batch = await getBatch(client, batch.id);
    }
  } finally {
    progress.end();
  }
}
