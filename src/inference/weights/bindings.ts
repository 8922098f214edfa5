// Which weights on this machine's disk serve which model id. The database is authoritative; lookups are answered
// from memory, because a router makes one per request.

import type { Database, Tx } from '#db/tables/tables.ts';
import { checkGguf, toModelKind } from '#inference/gguf-check.ts';
import type { CatalogEntry } from '#inference/models/catalog.ts';
import type { ModelKind } from '#inference/pooling.ts';
import type { Clock } from '#lib/clock.ts';
import type { Store, Weights } from './store.ts';

export interface ServingWeights {
  /** The file that an engine opens. */
  readonly path: string;
  /** The name shown to people. */
  readonly name: string;
  /**
   * A different checksum under the same name is a new version: an engine that has the old one must reopen the
   * file.
   */
  readonly checksum: string;
  /** What the file was made for; null if that can't be told. */
  readonly kind: ModelKind | null;
}

export interface Bindings {
  find(modelId: string): ServingWeights | undefined;
  /** All weights that serve a model. */
  list(): ServingWeights[];
  /** The models that these weights serve. */
  modelsOf(name: string): string[];
  /**
   * Calls the listener with each model whose weights were added, removed or changed. Returns a function that
   * unsubscribes.
   */
  subscribe(listener: (modelId: string) => void): () => void;
  bind(db: Database | Tx, modelId: string, name: string): Promise<void>;
  unbind(tx: Tx, name: string): Promise<void>;
  /** Reads the database and the disk again: after a change, and periodically for changes by other processes. */
  refresh(): Promise<void>;
}

export async function createBindings(db: Database, clock: Clock, store: Store): Promise<Bindings> {
  let serving: ReadonlyMap<string, ServingWeights> = new Map();
  const listeners = new Set<(modelId: string) => void>();
  let turn: Promise<void> = Promise.resolve();

  async function reload(): Promise<void> {
    const rows = await db
      .selectFrom('model_weights')
      .select(['model_id', 'name'])
      .where('store_id', '=', store.id)
      .execute();
    const stored = (await store.list()).filter(({ isWhole }) => isWhole);
    const whole = new Map(stored.map((weights) => [weights.name, weights]));
    const before = serving;
    const after = new Map<string, ServingWeights>();
    for (const { model_id, name } of rows) {
      const weights = whole.get(name);
      if (weights !== undefined)
        after.set(model_id, await toServing(weights, before.get(model_id)));
    }
    serving = after;
    for (const modelId of new Set([...before.keys(), ...serving.keys()])) {
      if (isSame(before.get(modelId), serving.get(modelId))) continue;
      for (const listener of listeners) listener(modelId);
    }
  }

  /** Serialized, so that an older read never overwrites a newer one. */
  function refresh(): Promise<void> {
    turn = turn.catch(() => {}).then(reload);
    return turn;
  }

  await refresh();
  return {
    find: (modelId) => serving.get(modelId),
    list: () => [...serving.values()],
    modelsOf: (name) => [...serving].filter(([, one]) => one.name === name).map(([id]) => id),
    subscribe(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    async bind(on, modelId, name) {
      await on
        .insertInto('model_weights')
        .values({ store_id: store.id, model_id: modelId, name, created_at: clock.now() })
        .onConflict((row) => row.columns(['store_id', 'model_id']).doUpdateSet({ name }))
        .execute();
    },
    async unbind(tx, name) {
      await tx
        .deleteFrom('model_weights')
        .where('store_id', '=', store.id)
        .where('name', '=', name)
        .execute();
    },
    refresh,
  };
}

/** What a model was made for, by its settings or by its file. A chat if neither says so. */
export const kindOf = ({ id, kind }: CatalogEntry, bindings: Bindings): ModelKind =>
  kind ?? bindings.find(id)?.kind ?? 'chat';

/** The header of a file is read once for each version. */
async function toServing(
  { path, name, files }: Weights,
  before: ServingWeights | undefined,
): Promise<ServingWeights> {
  const checksum = files.map(({ sha256 }) => sha256).join('+');
  if (before?.name === name && before.checksum === checksum) return before;
  // A file that is not sound is reported when an engine opens it.
  const kind = await checkGguf(path).then(toModelKind, () => null);
  return { path, name, checksum, kind };
}

const isSame = (one: ServingWeights | undefined, other: ServingWeights | undefined) =>
  one?.name === other?.name && one?.checksum === other?.checksum;
