// Memoizes a function by a name computed from its argument. Names may come from outside, so the memory is
// bounded.

import { LRUCache } from 'lru-cache';

const maxEntries = 1000;

export function memoize<Argument, Result extends object>(
  nameOf: (argument: Argument) => string,
  compute: (argument: Argument) => Result,
): (argument: Argument) => Result {
  const known = new LRUCache<string, Result>({ max: maxEntries });
  return (argument) => {
    const name = nameOf(argument);
    const found = known.get(name);
    if (found !== undefined) return found;
    const result = compute(argument);
    known.set(name, result);
    return result;
  };
}
