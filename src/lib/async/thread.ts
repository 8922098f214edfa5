// Worker threads of this program. They inherit neither its flags nor its environment, which holds secrets, but
// they share its compile cache. A thread that died is started again by the next request to it.

import { type Transferable, Worker, type WorkerOptions } from 'node:worker_threads';
import { compileCacheEnvironment } from '#lib/computer/compile-cache.ts';

export interface Thread {
  /** Starts the thread unless it is running. */
  start(): void;
  /** True once the thread has sent `ready`. */
  isReady(): boolean;
  /** Sends a message, starting the thread if needed. Keeps the process alive until `release`. */
  send(message: unknown, transfer?: readonly Transferable[]): void;
  /** Call when no response is outstanding: the thread no longer keeps the process alive. */
  release(): void;
  close(): Promise<void>;
}

export interface ThreadOptions extends Pick<WorkerOptions, 'workerData' | 'resourceLimits'> {
  name: string;
  file: URL;
}

/** The first message of a thread, once it can take work. */
export const ready = 'ready';

export function createThread<Response>(
  { file, ...options }: ThreadOptions,
  events: { received(response: Response): void; ended(error: Error): void },
): Thread {
  let worker: Worker | undefined;
  let isReady = false;

  function start(): Worker {
    const started = new Worker(file, { ...options, execArgv: [], env: compileCacheEnvironment() });
    let cause: unknown;
    started.on('message', (response: Response | typeof ready) => {
      if (response === ready) isReady = true;
      else events.received(response);
    });
    started.on('error', (error) => {
      cause = error;
    });
    started.on('exit', () => {
      worker = undefined;
      isReady = false;
      events.ended(new Error(`the thread for ${options.name} has ended`, { cause }));
    });
    started.unref();
    return started;
  }

  return {
    start() {
      worker ??= start();
    },
    isReady: () => isReady,
    send(message, transfer = []) {
      worker ??= start();
      worker.ref();
      worker.postMessage(message, transfer);
    },
    release() {
      worker?.unref();
    },
    async close() {
      await worker?.terminate();
    },
  };
}
