// Which engine answers for which model: the weights pulled for it, or, for whatever has no backend of its
// own, the stand-in, which says so.

import type { CatalogEntry } from './catalog.ts';
import type { Engine } from './engine.ts';
import type { LocalEngine } from './engines/local.ts';
import type { Bindings, ServingWeights } from './weights/bindings.ts';

export interface Backends {
  engineFor(entry: CatalogEntry): Engine;
  close(): Promise<void>;
}

/** How long a replaced engine may go on with the requests it has. */
const retireMs = 10 * 60_000;

export function createBackends(
  standIn: LocalEngine,
  bindings: Bindings,
  openEngine: (weights: ServingWeights) => LocalEngine,
): Backends {
  /** One engine per weights, whichever ids they serve. */
  const engines = new Map<string, LocalEngine>();
  const retiring = new Set<LocalEngine>();
  const versionOf = ({ name, checksum }: ServingWeights) => `${name} ${checksum}`;

  function engineFor({ id }: CatalogEntry): Engine {
    const weights = bindings.find(id);
    if (weights === undefined) return standIn;
    const version = versionOf(weights);
    const known = engines.get(version);
    if (known !== undefined) return known;
    const opened = openEngine(weights);
    engines.set(version, opened);
    return opened;
  }

  const unsubscribe = bindings.subscribe(() => {
    const current = new Set(bindings.list().map(versionOf));
    for (const [version, engine] of engines) {
      if (current.has(version)) continue;
      engines.delete(version);
      retire(engine);
    }
  });

  /** Closed when it has answered what it was asked, so that new weights cut nobody off. */
  function retire(engine: LocalEngine): void {
    retiring.add(engine);
    const deadline = Date.now() + retireMs;
    const look = setInterval(() => {
      if (engine.status().requests > 0 && Date.now() < deadline) return;
      clearInterval(look);
      void engine.close().finally(() => retiring.delete(engine));
    }, 500).unref();
  }

  return {
    engineFor,
    async close() {
      unsubscribe();
      await Promise.all(
        [standIn, ...engines.values(), ...retiring].map((engine) => engine.close()),
      );
    },
  };
}
