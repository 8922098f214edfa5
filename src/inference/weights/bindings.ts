// Which weights on this machine's disk serve which model id. The database says it; memory answers, because
// a router asks on every request.

import type { Database, Tx } from '../../db/tables.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Store } from './store.ts';

export interface ServingWeights {
  /** What an engine opens. */
  readonly path: string;
  /** What people call it. */
  readonly name: string;
}

export interface Bindings {
  find(modelId: string): ServingWeights | undefined;
  /** The models that these weights serve. */
  modelsOf(name: string): string[];
  /** Called with each model whose weights came, went or changed. Answers how to stop. */
  subscribe(listener: (modelId: string) => void): () => void;
  bind(db: Database | Tx, modelId: string, name: string): Promise<void>;
  unbind(tx: Tx, name: string): Promise<void>;
  /** Reads database and disk again; after a change, and now and then for what others changed. */
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
    const whole = new Map(
      (await store.list()).filter(({ isWhole }) => isWhole).map(({ name, path }) => [name, path]),
    );
    const before = serving;
    serving = new Map(
      rows.flatMap(({ model_id, name }) => {
        const path = whole.get(name);
        return path === undefined ? [] : [[model_id, { path, name }] as const];
      }),
    );
    for (const modelId of new Set([...before.keys(), ...serving.keys()])) {
      if (before.get(modelId)?.name === serving.get(modelId)?.name) continue;
      for (const listener of listeners) listener(modelId);
    }
  }

  /** One at a time: an old reading must not overwrite a newer one. */
  function refresh(): Promise<void> {
    turn = turn.catch(() => {}).then(reload);
    return turn;
  }

  await refresh();
  return {
    find: (modelId) => serving.get(modelId),
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
