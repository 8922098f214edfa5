// Threads of this program: with neither its flags nor its secrets, and with its compiled sources, because
// stripping types anew would take each of them 17 MB and a tenth of a second. A thread that dies is started
// again by whoever needs it next.

import { getCompileCacheDir } from 'node:module';
import { dirname } from 'node:path';
import { Worker, type WorkerOptions } from 'node:worker_threads';

export interface Thread {
  /** Starts it unless it runs. */
  start(): void;
  /** It has said so. */
  isReady(): boolean;
  /** Starts it if need be, and keeps the process alive until `rest`. */
  ask(question: unknown): void;
  /** Nothing that was asked is open. */
  rest(): void;
  close(): Promise<void>;
}

export interface ThreadOptions extends Pick<WorkerOptions, 'workerData' | 'resourceLimits'> {
  name: string;
  file: URL;
}

/** What it says first, once it can be asked. */
export const ready = 'ready';

export function createThread<Answer>(
  { file, ...options }: ThreadOptions,
  events: { answered(answer: Answer): void; ended(error: Error): void },
): Thread {
  let worker: Worker | undefined;
  let isReady = false;

  function start(): Worker {
    const started = new Worker(file, { ...options, execArgv: [], env: toEnvironment() });
    let cause: unknown;
    started.on('message', (answer: Answer | typeof ready) => {
      if (answer === ready) isReady = true;
      else events.answered(answer);
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
    ask(question) {
      worker ??= start();
      worker.ref();
      worker.postMessage(question);
    },
    rest() {
      worker?.unref();
    },
    async close() {
      await worker?.terminate();
    },
  };
}

function toEnvironment() {
  const cache = getCompileCacheDir();
  return cache === undefined ? {} : { NODE_COMPILE_CACHE: dirname(cache) };
}
