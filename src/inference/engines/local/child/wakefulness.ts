// Keeps the event loop of this process from sleeping, which takes a whole core.

import { availableParallelism } from 'node:os';

/** Besides the event loop, the thread that waits for the GPU takes a core, and the API process needs another. */
const minCores = 4;

/**
 * Returns a function that keeps the event loop awake, or lets it sleep. It does nothing on
 * computers with fewer cores.
 */
export function createWakefulness(): (isAwake: boolean) => void {
  const hasCores = availableParallelism() >= minCores;
  let next: NodeJS.Immediate | null = null;
  function turn(): void {
    next = setImmediate(turn);
  }
  return (isAwake) => {
    if (!hasCores || isAwake === (next !== null)) return;
    if (isAwake) return turn();
    if (next !== null) clearImmediate(next);
    next = null;
  };
}
