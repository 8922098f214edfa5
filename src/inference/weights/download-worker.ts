// The thread that downloads files from the hub. The main thread orders and aborts downloads by their ids.

import { parentPort, workerData } from 'node:worker_threads';
import { ready } from '#lib/async/thread.ts';
import { download } from './download.ts';
import type {
  DownloadFailure,
  DownloadMessage,
  DownloadOrder,
  DownloadReport,
} from './download-thread.ts';
import { PullError } from './errors.ts';
import { Hub, type HubOptions } from './hub.ts';

const hub = new Hub(workerData as HubOptions);
const running = new Map<number, AbortController>();
/** A message for each chunk would cost the main thread more than it tells. */
const reportMs = 100;

const send = (report: DownloadReport) => parentPort?.postMessage(report);

async function run(id: number, { from, file, token, retry }: DownloadOrder): Promise<void> {
  const controller = new AbortController();
  running.set(id, controller);
  let bytes = file.bytesOnDisk;
  const progress = (now: number) => {
    bytes = now;
  };
  const reporting = setInterval(() => send({ id, bytes }), reportMs);
  const call = { signal: controller.signal, token, retry, progress };
  const failure = await download(hub, from, file, call).then(() => null, toFailure);
  clearInterval(reporting);
  running.delete(id);
  send({ id, bytes, failure });
}

const toFailure = (error: NodeJS.ErrnoException): DownloadFailure => ({
  pull: error instanceof PullError ? { code: error.code, retryAfterMs: error.retryAfterMs } : null,
  code: error.code,
  message: error.message,
});

parentPort?.on('message', ({ id, order }: DownloadMessage) => {
  if (order === undefined) running.get(id)?.abort();
  else void run(id, order);
});
parentPort?.postMessage(ready);
