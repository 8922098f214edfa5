// Which engine answers for which model. Whatever has no backend of its own is answered by the built-in
// model, which says so.

import type { CatalogEntry } from './catalog.ts';
import type { Engine } from './engine.ts';

export interface Backends {
  engineFor(entry: CatalogEntry): Engine;
  close(): Promise<void>;
}

export function createBackends(builtin: Engine): Backends {
  return {
    engineFor: () => builtin,
    close: () => builtin.close(),
  };
}
