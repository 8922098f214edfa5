// Counts tokens with the Llama-3 vocabulary in a thread, so that other requests are served meanwhile: loading it
// takes a good part of a second, and a long prompt tens of milliseconds. The thread starts with the first count, to
// save its memory until then. If it dies, its counts fail, and the next count restarts it.

import { createThread } from '#lib/async/thread.ts';

export interface TokenThread {
  /** Counts the tokens of all texts together; stops once they exceed `limit`. */
  count(texts: readonly string[], limit: number): Promise<number>;
  /** Whether the vocabulary is loaded. If it is not, starts loading it. */
  isReady(): boolean;
  /** Fails the counts in progress and all later ones. */
  close(): Promise<void>;
}

/** The texts are concatenated, because one long string is copied faster than thousands of short ones. */
export interface CountJob {
  readonly id: number;
  readonly text: string;
  readonly lengths: readonly number[];
  readonly limit: number;
}

/** Result of a job. */
export interface CountAnswer {
  readonly id: number;
  readonly counted: number | Error;
}

interface Waiting {
  resolve(tokens: number): void;
  reject(error: Error): void;
}

export function createTokenThread(): TokenThread {
  const waiting = new Map<number, Waiting>();
  let isClosed = false;
  let nextId = 0;
  const thread = createThread<CountAnswer>(
    {
      name: 'tokens',
      file: new URL('./token-worker.ts', import.meta.url),
      resourceLimits: { maxOldGenerationSizeMb: 512, maxYoungGenerationSizeMb: 2, stackSizeMb: 1 },
    },
    {
      received: ({ id, counted }) => settle(id, counted),
      ended(error) {
        for (const id of [...waiting.keys()]) settle(id, error);
      },
    },
  );

  function settle(id: number, counted: number | Error): void {
    const one = waiting.get(id);
    waiting.delete(id);
    if (waiting.size === 0) thread.release();
    if (typeof counted === 'number') one?.resolve(counted);
    else one?.reject(counted);
  }

  return {
    count(texts, limit) {
      if (isClosed) return Promise.reject(new Error('tokens are no longer counted'));
      return new Promise((resolve, reject) => {
        const id = nextId++;
        waiting.set(id, { resolve, reject });
        const lengths = texts.map(({ length }) => length);
        thread.send({ id, text: texts.join(''), lengths, limit } satisfies CountJob);
      });
    },
    isReady() {
      if (!isClosed) thread.start();
      return thread.isReady() && !isClosed;
    },
    async close() {
      isClosed = true;
      await thread.close();
    },
  };
}
