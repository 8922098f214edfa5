// Downloads in a thread of their own: receiving, decrypting and hashing many gigabytes would delay
// every response of the server. The thread starts with the first download.

import { PullError, type PullErrorCode } from '#inference/weights/errors.ts';
import type { HubOptions } from '#inference/weights/hub.ts';
import type { StoredFile } from '#inference/weights/store.ts';
import { createThread } from '#lib/async/thread.ts';
import type { Progress, RetryRules } from '#lib/growing-file.ts';

export interface DownloadOrder {
  readonly from: { readonly repo: string; readonly commit: string };
  readonly file: StoredFile;
  readonly token: string | null;
  readonly retry: RetryRules;
}

/** To the thread. Without an order, the download of this id is aborted. */
export interface DownloadMessage {
  readonly id: number;
  readonly order?: DownloadOrder;
}

/** From the thread. */
export interface DownloadReport {
  readonly id: number;
  /** Bytes of the file that are on disk. */
  readonly bytes?: number;
  /** The download has ended: null if the file is whole. */
  readonly failure?: DownloadFailure | null;
}

export interface DownloadFailure {
  /** Null unless it is a PullError. */
  readonly pull: { readonly code: PullErrorCode; readonly retryAfterMs: number } | null;
  /** Code of the operating system; undefined if it has none. */
  readonly code: string | undefined;
  readonly message: string;
}

export interface Downloads {
  /** Resolves when the file is whole and verified. Rejects with a PullError or an error of the disk. */
  run(order: DownloadOrder, progress: Progress, signal: AbortSignal): Promise<void>;
  close(): Promise<void>;
}

interface Job {
  readonly progress: Progress;
  end(failure: DownloadFailure | null): void;
}

export function createDownloads(hub: HubOptions): Downloads {
  const jobs = new Map<number, Job>();
  let lastId = 0;
  const thread = createThread<DownloadReport>(
    {
      name: 'downloads',
      file: new URL('./download-worker.ts', import.meta.url),
      workerData: hub,
      resourceLimits: { maxOldGenerationSizeMb: 256 },
    },
    {
      received({ id, bytes, failure }) {
        const job = jobs.get(id);
        if (bytes !== undefined) job?.progress(bytes);
        if (failure !== undefined) job?.end(failure);
      },
      ended({ message }) {
        for (const job of jobs.values()) job.end({ pull: null, code: undefined, message });
      },
    },
  );

  const run: Downloads['run'] = (order, progress, signal) =>
    new Promise((resolve, reject) => {
      signal.throwIfAborted();
      const id = ++lastId;
      const abort = () => thread.send({ id } satisfies DownloadMessage);
      signal.addEventListener('abort', abort);
      jobs.set(id, {
        progress,
        end(failure) {
          signal.removeEventListener('abort', abort);
          jobs.delete(id);
          if (jobs.size === 0) thread.release();
          if (failure === null) resolve();
          else reject(signal.aborted ? signal.reason : toError(failure));
        },
      });
      thread.send({ id, order } satisfies DownloadMessage);
    });

  return { run, close: thread.close };
}

const toError = ({ pull, code, message }: DownloadFailure): Error =>
  pull === null
    ? Object.assign(new Error(message), { code })
    : new PullError(pull.code, message, pull.retryAfterMs);
