// Counts in the Llama-3 vocabulary, in a thread of its own: loading it takes a good part of a second, a long
// prompt tens of milliseconds, and others are served meanwhile. It starts with the first count, because its
// memory is worth more until then. If it dies, what it had fails, and the next count starts it again.

import type { Worker } from 'node:worker_threads';
import { startThread } from '../lib/thread.ts';

export interface TokenThread {
  /** Tokens of all texts together; stops counting once they are over `limit`. */
  count(texts: readonly string[], limit: number): Promise<number>;
  /** Whether it has its vocabulary; where it does not, it is loaded from now on. */
  isReady(): boolean;
  /** What is being counted fails, and whatever comes later. */
  close(): Promise<void>;
}

/** The texts stand one after another: one long string is copied sooner than thousands of short ones. */
export interface CountJob {
  readonly id: number;
  readonly text: string;
  readonly lengths: readonly number[];
  readonly limit: number;
}

/** What the thread says: that it is up, and then of each job what came of it. */
export type CountAnswer = 'ready' | { readonly id: number; readonly counted: number | Error };

interface Waiting {
  resolve(tokens: number): void;
  reject(error: Error): void;
}

export function createTokenThread(): TokenThread {
  const waiting = new Map<number, Waiting>();
  let worker: Worker | undefined;
  let isLoaded = false;
  let isClosed = false;
  let nextId = 0;

  function start(): Worker {
    const started = startThread(new URL('./token-worker.ts', import.meta.url), {
      name: 'tokens',
      resourceLimits: { maxOldGenerationSizeMb: 512, stackSizeMb: 1 },
    });
    let cause: unknown;
    started.on('message', (answer: CountAnswer) => {
      if (answer === 'ready') isLoaded = true;
      else settle(answer.id, answer.counted);
    });
    started.on('error', (error) => {
      cause = error;
    });
    started.on('exit', () => {
      worker = undefined;
      isLoaded = false;
      const error = new Error('the thread that counts tokens has ended', { cause });
      for (const id of [...waiting.keys()]) settle(id, error);
    });
    started.unref();
    return started;
  }

  function settle(id: number, counted: number | Error): void {
    const one = waiting.get(id);
    waiting.delete(id);
    // Only counts under way keep the process alive.
    if (waiting.size === 0) worker?.unref();
    if (typeof counted === 'number') one?.resolve(counted);
    else one?.reject(counted);
  }

  return {
    count(texts, limit) {
      if (isClosed) return Promise.reject(new Error('tokens are no longer counted'));
      worker ??= start();
      const asked = worker;
      return new Promise((resolve, reject) => {
        const id = nextId++;
        waiting.set(id, { resolve, reject });
        asked.ref();
        const lengths = texts.map(({ length }) => length);
        asked.postMessage({ id, text: texts.join(''), lengths, limit } satisfies CountJob);
      });
    },
    isReady() {
      if (!isClosed) worker ??= start();
      return isLoaded && !isClosed;
    },
    async close() {
      isClosed = true;
      await worker?.terminate();
    },
  };
}
