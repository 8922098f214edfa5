// Backends added live, as rows, and the models that have or had a backend. Keys and headers are encrypted. Every change
// increments the version, which also makes concurrent changes run one after the other.

import { sql } from 'kysely';
import type { BackendRow } from '#db/tables/model-rows.ts';
import type { Database, Tx } from '#db/tables/tables.ts';
import type { UpstreamSpec } from '#inference/backends/spec.ts';
import type { UpstreamServer } from '#inference/engines/upstream/servers.ts';
import type { Clock } from '#lib/clock.ts';
import { newId } from '#lib/ids.ts';
import type { Seal } from '#lib/secrets/seal.ts';

export type LiveValues = Partial<Pick<BackendRow, 'weight' | 'concurrency'>>;

interface Secrets {
  api_key: string | null;
  headers: Record<string, string>;
}

export class LiveRows {
  readonly #db: Database;
  readonly #clock: Clock;
  readonly #seal: Seal;

  constructor(db: Database, clock: Clock, seal: Seal) {
    this.#db = db;
    this.#clock = clock;
    this.#seal = seal;
  }

  async version(): Promise<number> {
    const row = await this.#db.selectFrom('backends_version').select('version').executeTakeFirst();
    return row?.version ?? 0;
  }

  list(): Promise<BackendRow[]> {
    return this.#db
      .selectFrom('backends')
      .selectAll()
      .orderBy('created_at')
      .orderBy('id')
      .execute();
  }

  /** Drained backends of every source, as `<model>/<name>`. */
  async drained(): Promise<Set<string>> {
    const rows = await this.#db
      .selectFrom('drained_backends')
      .select(['model_id', 'name'])
      .execute();
    return new Set(rows.map(({ model_id, name }) => `${model_id}/${name}`));
  }

  /** Models that have or had a backend. */
  async served(): Promise<Set<string>> {
    const rows = await this.#db.selectFrom('served_models').select('model_id').execute();
    return new Set(rows.map(({ model_id }) => model_id));
  }

  async recordServed(tx: Tx, models: readonly string[]): Promise<void> {
    const served_at = this.#clock.now();
    await tx
      .insertInto('served_models')
      .values(models.map((model_id) => ({ model_id, served_at })))
      .onConflict((row) => row.doNothing())
      .execute();
  }

  async forgetServed(tx: Tx, model: string): Promise<void> {
    await tx.deleteFrom('served_models').where('model_id', '=', model).execute();
  }

  /** Throws if the row was encrypted with another key. */
  toSpec(row: BackendRow): UpstreamSpec {
    const { api_key, headers } = JSON.parse(this.#seal.open(row.secrets, row.id)) as Secrets;
    return {
      source: 'live',
      model: row.model_id,
      name: row.name,
      url: row.url,
      apiKey: api_key,
      upstreamModel: row.upstream_model,
      server: row.server as UpstreamServer,
      headers,
      weight: row.weight,
      concurrency: row.concurrency,
      timeouts: {
        connectMs: row.connect_ms,
        firstByteMs: row.first_byte_ms,
        idleMs: row.idle_ms,
      },
      continueStreams: row.continue_streams === null ? null : row.continue_streams === 1,
    };
  }

  /** Must come first in every transaction that changes something. */
  async countUp(tx: Tx): Promise<void> {
    await tx.updateTable('backends_version').set({ version: sql`version + 1` }).execute();
  }

  async insert(tx: Tx, spec: UpstreamSpec): Promise<void> {
    const id = newId();
    const secrets: Secrets = { api_key: spec.apiKey, headers: { ...spec.headers } };
    await tx
      .insertInto('backends')
      .values({
        id,
        model_id: spec.model,
        name: spec.name,
        url: spec.url,
        upstream_model: spec.upstreamModel,
        server: spec.server,
        secrets: this.#seal.close(JSON.stringify(secrets), id),
        weight: spec.weight,
        concurrency: spec.concurrency,
        connect_ms: spec.timeouts.connectMs,
        first_byte_ms: spec.timeouts.firstByteMs,
        idle_ms: spec.timeouts.idleMs,
        continue_streams: spec.continueStreams === null ? null : Number(spec.continueStreams),
        created_at: this.#clock.now(),
      })
      .execute();
  }

  async update(tx: Tx, model: string, name: string, values: LiveValues): Promise<void> {
    await tx
      .updateTable('backends')
      .set(values)
      .where('model_id', '=', model)
      .where('name', '=', name)
      .execute();
  }

  async drain(tx: Tx, model: string, name: string): Promise<void> {
    await tx
      .insertInto('drained_backends')
      .values({ model_id: model, name, drained_at: this.#clock.now() })
      .onConflict((row) => row.doNothing())
      .execute();
  }

  async resume(tx: Tx, model: string, name: string): Promise<void> {
    await tx
      .deleteFrom('drained_backends')
      .where('model_id', '=', model)
      .where('name', '=', name)
      .execute();
  }

  /** Returns false if there was none. */
  async remove(tx: Tx, model: string, name: string): Promise<boolean> {
    const { numDeletedRows } = await tx
      .deleteFrom('backends')
      .where('model_id', '=', model)
      .where('name', '=', name)
      .executeTakeFirst();
    await this.resume(tx, model, name);
    return numDeletedRows > 0n;
  }
}
