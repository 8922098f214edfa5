// Keeps the event loop of this process from sleeping, which takes a whole core.

import { availableParallelism } from 'node:os';

/** Besides the event loop, the thread that waits for the GPU takes a core, and the API process needs another. */
const minCores = 4;

/** Returns a function that says whether the event loop stays awake. On a computer with few cores it sleeps all the same. */
export function createWakefulness(): (isAwake: boolean) => void {
  let staysAwake = false;
  function turn(): void {
    if (staysAwake) setImmediate(turn);
  }
  return (isAwake) => {
    if (isAwake === staysAwake || availableParallelism() < minCores) return;
    staysAwake = isAwake;
    turn();
  };
}
