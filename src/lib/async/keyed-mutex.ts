// A mutex per key: work under one key runs one after the other, work under different keys runs concurrently.

export interface KeyedMutex {
  /** Runs the work once all earlier work under the same key has settled. */
  run<Result>(key: string, work: () => Promise<Result>): Promise<Result>;
  /** True while work under the key runs or waits. */
  isHeld(key: string): boolean;
}

export function createKeyedMutex(): KeyedMutex {
  const tails = new Map<string, Promise<unknown>>();
  return {
    isHeld: (key) => tails.has(key),
    async run(key, work) {
      const result = (tails.get(key) ?? Promise.resolve()).then(work, work);
      const tail = result.catch(() => {});
      tails.set(key, tail);
      try {
        return await result;
      } finally {
        if (tails.get(key) === tail) tails.delete(key);
      }
    },
  };
}
