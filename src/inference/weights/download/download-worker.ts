// The thread that downloads files from the hub. The main thread orders and aborts downloads by their ids.

import { parentPort, workerData } from 'node:worker_threads';
import { PullError } from '#inference/weights/errors.ts';
import { Hub, type HubOptions } from '#inference/weights/hub.ts';
import { ready } from '#lib/async/thread.ts';
import { download } from './download.ts';
import type {
  DownloadFailure,
  DownloadMessage,
  DownloadOrder,
  DownloadReport,
} from './download-thread.ts';

/** A message for each chunk would cost the main thread more than it tells. */
const reportMs = 100;

const send = (report: DownloadReport) => parentPort?.postMessage(report);

async function run(
  hub: Hub,
  id: number,
  { from, file, token, retry }: DownloadOrder,
  signal: AbortSignal,
): Promise<void> {
  let bytes = file.bytesOnDisk;
  const progress = (now: number) => {
    bytes = now;
  };
  const reporting = setInterval(() => send({ id, bytes }), reportMs);
  const call = { signal, token, retry, progress };
  const failure = await download(hub, from, file, call).then(() => null, toFailure);
  clearInterval(reporting);
  send({ id, bytes, failure });
}

const toFailure = (error: NodeJS.ErrnoException): DownloadFailure => ({
  pull: error instanceof PullError ? { code: error.code, retryAfterMs: error.retryAfterMs } : null,
  code: error.code,
  message: error.message,
});

function takeOrders(hub: Hub): void {
  const running = new Map<number, AbortController>();
  parentPort?.on('message', ({ id, order }: DownloadMessage) => {
    if (order === undefined) return running.get(id)?.abort();
    const controller = new AbortController();
    running.set(id, controller);
    void run(hub, id, order, controller.signal).finally(() => running.delete(id));
  });
  parentPort?.postMessage(ready);
}

takeOrders(new Hub(workerData as HubOptions));
