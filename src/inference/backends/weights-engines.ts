// One engine for each set of weights, shared by all model ids it serves. New weights under an old name get a new
// engine, and the old one is retired.

import type { LocalEngine } from '#inference/engines/local/parent/local.ts';
import type { Bindings, ServingWeights } from '#inference/weights/bindings.ts';
import type { Retirement } from './retirement.ts';

export interface WeightsEngines {
  /** Opens the engine at the first call. The model is loaded at its first request. */
  engineFor(weights: ServingWeights): LocalEngine;
  /** Retires the engines that serve no model any more. */
  prune(): void;
  close(): Promise<void>;
}

export const versionOf = ({ name, checksum }: ServingWeights) => `${name} ${checksum}`;

export function createWeightsEngines(
  bindings: Bindings,
  open: (weights: ServingWeights) => LocalEngine,
  retirement: Retirement,
): WeightsEngines {
  const engines = new Map<string, LocalEngine>();
  return {
    engineFor(weights) {
      const version = versionOf(weights);
      const known = engines.get(version);
      if (known !== undefined) return known;
      const opened = open(weights);
      engines.set(version, opened);
      return opened;
    },
    prune() {
      const current = new Set(bindings.list().map(versionOf));
      for (const [version, engine] of engines) {
        if (current.has(version)) continue;
        engines.delete(version);
        const isIdle = () => engine.status().requests === 0;
        void retirement.retire({ isIdle, close: () => engine.close() });
      }
    },
    async close() {
      await Promise.all([...engines.values()].map((engine) => engine.close()));
    },
  };
}
