// Stored responses in the database, for every server on it. A response belongs to the account that made it: to any
// other it does not exist. What is stored is bounded by age and, per account, by size.

import { setImmediate as yieldToEventLoop } from 'node:timers/promises';
import { commitQuickly } from '#db/sqlite/quick-commit.ts';
import type { Database, Tx } from '#db/tables/tables.ts';
import type { InputItem, OutputItem, ResponseObject } from '#inference/apis/responses/schema.ts';
import type { Clock } from '#lib/clock.ts';
import {
  type ChainEnd,
  findEnd,
  findPlace,
  isPossibleId,
  readItems,
  resolveReferences,
} from './chain.ts';
import { contextTooLarge, responseNotFound } from './stored-errors.ts';
import {
  addBytes,
  deleteOldest,
  deleteRuns,
  evict,
  insertItems,
  insertResponse,
  isLive,
  liveStatuses,
  maxDeleted,
  sizeOf,
  toBody,
  toItems,
  toListed,
  toRow,
} from './stored-rows.ts';

export interface StoreOptions {
  readonly keepMs: number;
  /** Maximum bytes stored for an account. The oldest responses are deleted when there are more. */
  readonly maxBytes: number;
  /** Maximum bytes that one response may continue, refer to and add. */
  readonly maxContextBytes: number;
}

export interface TurnRequest {
  readonly previous_response_id?: string | null | undefined;
  readonly input?: string | readonly InputItem[] | null | undefined;
  readonly store?: boolean | null | undefined;
}

/** One response in the making. */
export interface Turn {
  /** What the model reads, oldest first: what the request continues, and its own input. No references. */
  readonly items: readonly InputItem[];
  /** Where the response belongs once it is stored. */
  readonly place: NewResponse;
  /** Stores the response once it has ended. Does nothing if the request says so. */
  save(response: ResponseObject): Promise<void>;
}

export interface ItemPage {
  readonly after?: string | undefined;
  readonly limit: number;
  readonly order: 'asc' | 'desc';
}

export interface ListedItems {
  readonly data: (InputItem & { id: string })[];
  readonly hasMore: boolean;
}

/** A response and its place, before it is stored. */
export interface NewResponse {
  readonly accountId: string;
  readonly end: ChainEnd | null;
  readonly input: readonly InputItem[];
}

export class ResponseStore {
  readonly db: Database;
  readonly #clock: Clock;
  readonly #options: StoreOptions;

  constructor(db: Database, clock: Clock, options: StoreOptions) {
    this.db = db;
    this.#clock = clock;
    this.#options = options;
  }

  /** Reads what a request continues and refers to. Throws InferenceError. */
  async openTurn(accountId: string, request: TurnRequest): Promise<Turn> {
    const { items, ...place } = await this.readContext(accountId, request);
    return {
      items,
      place,
      save: async (response) => {
        if (request.store !== false) await this.insert(place, response);
      },
    };
  }

  async readContext(
    accountId: string,
    { previous_response_id: previous, input: given, store }: TurnRequest,
  ): Promise<NewResponse & { items: readonly InputItem[] }> {
    const { maxContextBytes } = this.#options;
    const input = toItems(given);
    const end = previous == null ? null : await this.#findEnd(accountId, previous);
    // What the client sends is bounded as a body, but what is stored is read again with each turn.
    const added = store === false || end === null ? 0 : sizeOf(input);
    if ((end?.bytes ?? 0) + added > maxContextBytes) throw contextTooLarge(maxContextBytes);
    const before = end === null ? [] : await readItems(this.db, accountId, end);
    const items = before.length === 0 ? input : [...before, ...input];
    const room = maxContextBytes - (end?.bytes ?? 0);
    const resolved = await resolveReferences(this.db, accountId, items, room);
    return { accountId, end, input, items: resolved };
  }

  /**
   * Stores a response with its items, and deletes the oldest ones of the account if it has too
   * many. A power cut may lose it, unless `also` writes with it.
   */
  async insert(place: NewResponse, response: ResponseObject, also?: (tx: Tx) => Promise<void>) {
    const { accountId, end, input } = place;
    const rows = [
      ...input.map((item) => toRow(item, false)),
      ...response.output.map((item) => toRow(item, true)),
    ];
    const body = toBody(response);
    const itemBytes = sum(rows);
    const values = {
      id: response.id,
      account_id: accountId,
      previous_id: end?.id ?? null,
      status: response.status,
      bytes: Buffer.byteLength(body) + itemBytes,
      chain_bytes: (end?.bytes ?? 0) + itemBytes,
      created_at: this.#clock.now(),
      body,
    };
    const write = async (tx: Tx) => {
      const total = await addBytes(tx, accountId, values.bytes);
      await insertResponse(tx, values, end);
      await insertItems(tx, values, rows);
      await also?.(tx);
      await evict(tx, values, total - this.#options.maxBytes);
    };
    if (also === undefined) await commitQuickly(this.db, write);
    else await this.db.transaction().execute(write);
  }

  /**
   * Replaces a response that has not ended, and adds its output. Returns false if it has ended, for example because it
   * was cancelled.
   */
  complete(accountId: string, response: ResponseObject, also?: (tx: Tx) => Promise<void>) {
    const at = { id: response.id, account_id: accountId };
    const rows = response.output.map((item) => toRow(item, true));
    const body = toBody(response);
    return this.db.transaction().execute(async (tx) => {
      await addBytes(tx, accountId, 0);
      const before = await tx
        .selectFrom('responses')
        .select(['status', 'body', 'bytes', 'chain_bytes'])
        .where('id', '=', at.id)
        .where('account_id', '=', accountId)
        .executeTakeFirst();
      if (before === undefined || !isLive(before.status)) return false;
      const grown = sum(rows) + Buffer.byteLength(body) - Buffer.byteLength(before.body);
      await tx
        .updateTable('responses')
        .set({ status: response.status, body, bytes: before.bytes + grown })
        .set({ chain_bytes: before.chain_bytes + sum(rows) })
        .where('id', '=', at.id)
        .execute();
      const total = await addBytes(tx, accountId, grown);
      await insertItems(tx, at, rows);
      await also?.(tx);
      await evict(tx, at, total - this.#options.maxBytes);
      return true;
    });
  }

  /** The object as it was last stored. Throws if it does not exist. */
  async get(accountId: string, id: string): Promise<ResponseObject> {
    const body = await this.#findBody(accountId, id);
    const output = await this.db
      .selectFrom('response_items')
      .select('content')
      .where('response_id', '=', id)
      .where('is_output', '=', 1)
      .orderBy('position')
      .execute();
    return { ...body, output: output.map(({ content }) => JSON.parse(content) as OutputItem) };
  }

  /** What a stored response was made from: what it continues, and its own input. */
  async readOwn(accountId: string, id: string): Promise<readonly InputItem[]> {
    const end = await findPlace(this.db, accountId, id);
    if (end === undefined) throw responseNotFound(id);
    const items = await readItems(this.db, accountId, end);
    return resolveReferences(this.db, accountId, items, this.#options.maxContextBytes);
  }

  async remove(accountId: string, id: string): Promise<void> {
    await this.#findBody(accountId, id);
    await this.db.transaction().execute(async (tx) => {
      await addBytes(tx, accountId, 0);
      await deleteRuns(tx, [id]);
      const row = await tx
        .deleteFrom('responses')
        .where('id', '=', id)
        .where('account_id', '=', accountId)
        .returning('bytes')
        .executeTakeFirst();
      if (row === undefined) throw responseNotFound(id);
      await addBytes(tx, accountId, -row.bytes);
    });
  }

  /** The response's own input, without what it continues. */
  async listInput(accountId: string, id: string, page: ItemPage): Promise<ListedItems> {
    await this.#findBody(accountId, id);
    const own = this.db
      .selectFrom('response_items')
      .where('response_id', '=', id)
      .where('is_output', '=', 0);
    const { after, limit, order } = page;
    let query = own.select(['id', 'position', 'content']).orderBy('position', order);
    if (after !== undefined) {
      const last = isPossibleId(after)
        ? await own.select('position').where('id', '=', after).limit(1).executeTakeFirst()
        : undefined;
      if (last === undefined) throw responseNotFound(after);
      query = query.where('position', order === 'asc' ? '>' : '<', last.position);
    }
    const rows = await query.limit(limit + 1).execute();
    const shown = rows.slice(0, limit);
    const given = shown.map(({ content }) => JSON.parse(content) as InputItem);
    const { maxContextBytes } = this.#options;
    const items = await resolveReferences(this.db, accountId, given, maxContextBytes);
    return {
      data: items.map((item, at) => toListed(item, shown[at]?.id ?? '')),
      hasMore: rows.length > limit,
    };
  }

  /** Deletes what is older than the retention. */
  async sweep(): Promise<void> {
    const accounts = await this.db.selectFrom('response_storage').select('account_id').execute();
    for (const { account_id: accountId } of accounts) {
      while ((await this.#sweepSome(accountId)) === maxDeleted) await yieldToEventLoop();
    }
  }

  #sweepSome(accountId: string): Promise<number> {
    return this.db.transaction().execute(async (tx) => {
      await addBytes(tx, accountId, 0);
      return deleteOldest(tx, accountId, { before: this.#keptSince() });
    });
  }

  #keptSince(): number {
    return this.#clock.now() - this.#options.keepMs;
  }

  #findEnd(accountId: string, id: string): Promise<ChainEnd> {
    return findEnd(this.db, accountId, id, this.#keptSince());
  }

  async #findBody(accountId: string, id: string): Promise<Omit<ResponseObject, 'output'>> {
    const row = isPossibleId(id)
      ? await this.db
          .selectFrom('responses')
          .select(['body', 'status'])
          .where('id', '=', id)
          .where('account_id', '=', accountId)
          // One that has not ended is kept until it has.
          .where(({ or, eb }) =>
            or([eb('created_at', '>=', this.#keptSince()), eb('status', 'in', liveStatuses)]),
          )
          .executeTakeFirst()
      : undefined;
    if (row === undefined) throw responseNotFound(id);
    return { ...JSON.parse(row.body), status: row.status };
  }
}

const sum = (rows: readonly { bytes: number }[]) =>
  rows.reduce((total, { bytes }) => total + bytes, 0);
