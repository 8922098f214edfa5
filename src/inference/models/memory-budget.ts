// Memory budget for all models on this machine together. A model that is being loaded gets what the loaded ones
// leave; if that seems too little, idle models are unloaded.

import { statSync } from 'node:fs';
import type { LocalEngine } from '#inference/engines/local/parent/local.ts';
import type { ProcessEvent } from '#inference/engines/local/parent/supervisor.ts';

/** One engine's share of the budget. */
export interface Share {
  own(engine: LocalEngine): void;
  /** Makes room, and returns the bytes that the engine may use if it is loaded now. */
  limit(): number;
  see(event: ProcessEvent): void;
}

export interface MemoryBudget {
  share(modelPath: string): Share;
}

interface Taker {
  engine: LocalEngine | null;
  bytes: number;
}

/**
 * Estimated memory per byte of weights, with the cache and the buffers. The engine itself refuses by exact
 * numbers.
 */
const overhead = 1.5;

export function createMemoryBudget(limitBytes: number): MemoryBudget {
  /** Engines that are loaded or being loaded, oldest first. */
  const taken = new Set<Taker>();

  function makeRoom(bytes: number, taker: Taker): number {
    const others = [...taken].filter((other) => other !== taker);
    let left = others.reduce((sum, other) => sum - other.bytes, limitBytes);
    for (const { engine, bytes: held } of others) {
      if (left >= bytes) break;
      if (engine?.status().requests !== 0) continue;
      void engine.unload();
      left += held;
    }
    return left;
  }

  return {
    share(modelPath) {
      const taker: Taker = { engine: null, bytes: 0 };
      return {
        own(engine) {
          taker.engine = engine;
        },
        limit() {
          const size = statSync(modelPath, { throwIfNoEntry: false })?.size ?? 0;
          const left = makeRoom(size * overhead, taker);
          // Reserved at once as an estimate, because another load may begin before this one knows what it needs.
          taker.bytes = Math.min(size * overhead, Math.max(0, left));
          taken.add(taker);
          return left;
        },
        see(event) {
          if (event.kind === 'ready') {
            taker.bytes = event.memoryBytes;
          } else if (event.kind === 'exited') taken.delete(taker);
        },
      };
    },
  };
}
