// Counts in the Llama-3 vocabulary, in a thread of its own: loading it takes a good part of a second, a long
// prompt tens of milliseconds, and others are served meanwhile. It starts with the first count, because its
// memory is worth more until then. If it dies, what it had fails, and the next count starts it again.

import { createThread } from '#lib/async/thread.ts';

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

/** What came of a job. */
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
      resourceLimits: { maxOldGenerationSizeMb: 512, stackSizeMb: 1 },
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
