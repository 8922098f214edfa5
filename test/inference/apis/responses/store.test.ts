// Stored responses on both databases: conversations of any length and form, whose they are, and their bounds.

import assert from 'node:assert';
import { after, before, describe, test } from 'node:test';
import type { KyselyPlugin } from 'kysely';
import { openDatabase } from '#db/open.ts';
import type { Database } from '#db/tables/tables.ts';
import type { InputItem, ResponseObject } from '#inference/apis/responses/schema.ts';
import { ResponseStore, type StoreOptions } from '#inference/apis/responses/stored/store.ts';
import { newId } from '#lib/ids.ts';
import { createHandClock } from '#test/support/clock.ts';
import { bothDatabases, createDatabase, stopOwnPostgres } from '#test/support/databases.ts';
import { explain } from '#test/support/explain.ts';
import { makeFolder } from '#test/support/process.ts';
import { refuses, responseObject, say } from '#test/support/stored-responses.ts';

const dayMs = 86_400_000;
const options: StoreOptions = {
  keepMs: 30 * dayMs,
  maxBytes: 2 ** 30,
  maxContextBytes: 2 ** 20,
};

describe('the store of responses', () => {
  after(stopOwnPostgres);

  for (const database of bothDatabases) {
    describe(`stored responses on ${database}`, () => {
      const clock = createHandClock();
      const drops: (() => Promise<void>)[] = [];
      let db: Database;
      let store: ResponseStore;
      before(async () => {
        const { url, drop } = await createDatabase(database);
        db = await openDatabase({ url, poolSize: 4, dataDir: makeFolder() });
        drops.push(() => db.destroy(), drop);
        store = new ResponseStore(db, clock, options);
      });
      after(async () => {
        for (const drop of drops) await drop();
      });

      const newAccount = async () => {
        const id = newId();
        await db
          .insertInto('accounts')
          .values({ id, name: 'A', created_at: 0 } as never)
          .execute();
        return id;
      };
      const add = async (
        account: string,
        text: string,
        previous: string | null = null,
        from = store,
      ) => {
        const turn = await from.openTurn(account, { input: text, previous_response_id: previous });
        const response = responseObject({ previous, output: [say(`re: ${text}`)] });
        await turn.save(response);
        return response;
      };
      const read = async (account: string, previous: string, from = store) => {
        const { items } = await from.openTurn(account, { previous_response_id: previous });
        return items.map(toText);
      };
      const countRows = async (account: string) => {
        const count = (table: 'responses' | 'response_items') =>
          db
            .selectFrom(table)
            .select(({ fn }) => fn.countAll<number>().as('count'))
            .where('account_id', '=', account)
            .executeTakeFirstOrThrow();
        return [
          Number((await count('responses')).count),
          Number((await count('response_items')).count),
        ];
      };
      const bytesOf = async (account: string) => {
        const row = await db
          .selectFrom('response_storage')
          .select('bytes')
          .where('account_id', '=', account)
          .executeTakeFirst();
        return row?.bytes;
      };

      // PostgreSQL may prefer to read small tables as a whole.
      if (database === 'sqlite')
        test('links are read from an index', async () => {
          const account = await newAccount();
          const { id } = await add(account, 'a');
          const plan = await explain(db, (own) =>
            read(account, id, new ResponseStore(own, clock, options)),
          );
          assert.match(plan, /SEARCH r USING COVERING INDEX responses_by_place/);
        });

      test('a conversation of 200 responses takes as many queries as one of two', async () => {
        const account = await newAccount();
        const ids: string[] = [];
        for (let at = 0; at < 200; at++) {
          ids.push((await add(account, `q${at}`, ids.at(-1) ?? null)).id);
        }
        const counted = countQueries(db);
        const counting = new ResponseStore(counted.db, clock, options);
        const costOf = async (id: string) => {
          const { queries, rows } = counted;
          const texts = await read(account, id, counting);
          return { texts, queries: counted.queries - queries, rows: counted.rows - rows };
        };
        const short = await costOf(ids[1] ?? '');
        const long = await costOf(ids[199] ?? '');
        assert.deepEqual(short.texts, ['q0', 're: q0', 'q1', 're: q1']);
        assert.equal(long.texts.length, 400);
        assert.deepEqual(long.texts.slice(-2), ['q199', 're: q199']);
        assert.equal(long.queries, short.queries);
        assert.equal(short.queries, 2);
        // The end of the conversation, and each item once.
        assert.equal(short.rows, 1 + 4);
        assert.equal(long.rows, 1 + 400);
        assert.deepEqual(await countRows(account), [200, 400], 'nothing is stored twice');
        const { largest } = await db
          .selectFrom('responses')
          .select(({ fn }) => fn.max<string>('path').as('largest'))
          .where('account_id', '=', account)
          .executeTakeFirstOrThrow();
        assert.equal(largest, '[]');
      });

      test('two responses may continue the same one, and branches may branch', async () => {
        const account = await newAccount();
        const root = await add(account, 'root');
        const left = await add(account, 'left', root.id);
        const right = await add(account, 'right', root.id);
        const third = await add(account, 'third', root.id);
        const deeper = await add(account, 'deeper', right.id);
        const split = await add(account, 'split', right.id);
        const end = await add(account, 'end', split.id);
        const line = async (id: string) =>
          (await read(account, id)).filter((text) => !text.startsWith('re: '));
        assert.deepEqual(await line(left.id), ['root', 'left']);
        assert.deepEqual(await line(third.id), ['root', 'third']);
        assert.deepEqual(await line(deeper.id), ['root', 'right', 'deeper']);
        assert.deepEqual(await line(end.id), ['root', 'right', 'split', 'end']);
        const counted = countQueries(db);
        await read(account, end.id, new ResponseStore(counted.db, clock, options));
        assert.deepEqual([counted.queries, counted.rows], [2, 1 + 8]);
      });

      test('responses that continue the same one at once become branches', async () => {
        const account = await newAccount();
        const root = await add(account, 'root');
        const texts = Array.from({ length: 8 }, (_, at) => `b${at}`);
        const all = await Promise.all(texts.map((text) => add(account, text, root.id)));
        for (const [at, { id }] of all.entries()) {
          assert.deepEqual(await read(account, id), ['root', 're: root', `b${at}`, `re: b${at}`]);
        }
      });

      test('a response is read, listed and deleted by its account alone', async () => {
        const [account, other] = [await newAccount(), await newAccount()];
        const one = await add(account, 'hello \u0000 \ud800');
        assert.deepEqual(await store.get(account, one.id), one);
        const page = { limit: 20, order: 'asc' } as const;
        const { data } = await store.listInput(account, one.id, page);
        assert.deepEqual(data.map(toText), ['hello \u0000 \ud800']);
        await refuses(404, () => store.get(other, one.id));
        await refuses(404, () => store.listInput(other, one.id, page));
        await refuses(404, () => store.remove(other, one.id));
        await refuses(400, () => add(other, 'theirs', one.id));
        await refuses(404, () => store.get(account, 'resp_\u0000'));
        await refuses(400, () => add(account, 'x', 'resp_\u0000'));
        await store.remove(account, one.id);
        await refuses(404, () => store.get(account, one.id));
        assert.deepEqual(await countRows(account), [0, 0]);
        assert.equal(await bytesOf(account), 0);
      });

      test('store: false leaves nothing behind', async () => {
        const account = await newAccount();
        const first = await add(account, 'kept');
        const turn = await store.openTurn(account, {
          input: 'secret',
          previous_response_id: first.id,
          store: false,
        });
        assert.deepEqual(turn.items.map(toText), ['kept', 're: kept', 'secret']);
        await turn.save(responseObject({ output: [say('secret too')] }));
        assert.deepEqual(await countRows(account), [1, 2]);
      });

      test('a conversation with a deleted response is refused, and says so', async () => {
        const account = await newAccount();
        const first = await add(account, 'one');
        const second = await add(account, 'two', first.id);
        const third = await add(account, 'three', second.id);
        await store.remove(account, second.id);
        const error = await refuses(400, () => read(account, third.id));
        assert.match(error.message, /was deleted or has expired/);
        assert.equal((await store.get(account, third.id)).id, third.id);
        assert.deepEqual(await read(account, first.id), ['one', 're: one']);
        // Another response takes the place of the deleted one, but not in the conversation of the third.
        const again = await add(account, 'two again', first.id);
        assert.deepEqual((await read(account, again.id))[2], 'two again');
        await refuses(400, () => read(account, third.id));
      });

      test('references are stored as such, and resolved when they are read', async () => {
        const [account, other] = [await newAccount(), await newAccount()];
        const first = await add(account, 'one');
        const id = first.output[0]?.id ?? '';
        const input: InputItem[] = [{ type: 'item_reference', id }, message('two')];
        const turn = await store.openTurn(account, { input });
        assert.deepEqual(turn.items.map(toText), ['re: one', 'two']);
        const second = responseObject({ output: [say('re: two')] });
        await turn.save(second);
        assert.deepEqual(await read(account, second.id), ['re: one', 'two', 're: two']);
        const page = { limit: 20, order: 'asc' } as const;
        const { data } = await store.listInput(account, second.id, page);
        assert.deepEqual(data.map(toText), ['re: one', 'two']);
        const error = await refuses(404, () => store.openTurn(other, { input }));
        assert.match(error.message, /Item with id 'msg_/);
        // No item can have such an id.
        for (const impossible of ['', 'a\u0000b']) {
          const unknown: InputItem[] = [{ type: 'item_reference', id: impossible }];
          await refuses(404, () => store.openTurn(account, { input: unknown }));
        }
        await store.remove(account, first.id);
        await refuses(404, () => read(account, second.id));
      });

      test('a short request can not refer to more than the context may hold', async () => {
        const account = await newAccount();
        const first = await add(account, 'a'.repeat(200_000));
        const { data } = await store.listInput(account, first.id, { limit: 1, order: 'asc' });
        const input = Array(6).fill({ type: 'item_reference', id: data[0]?.id });
        await refuses(413, () => store.openTurn(account, { input }));
        const long = await add(account, 'b'.repeat(600_000));
        const next = await refuses(413, () => add(account, 'c'.repeat(600_000), long.id));
        assert.equal(next.code, 'request_too_large');
      });

      test('input items are listed page by page, in both directions', async () => {
        const account = await newAccount();
        const texts = ['a', 'b', 'c', 'd', 'e'];
        const turn = await store.openTurn(account, { input: texts.map(message) });
        const response = responseObject({ output: [say('done')] });
        await turn.save(response);
        const list = async (order: 'asc' | 'desc') => {
          const pages: string[][] = [];
          let last: string | undefined;
          for (;;) {
            const page = { after: last, limit: 2, order };
            const { data, hasMore } = await store.listInput(account, response.id, page);
            pages.push(data.map(toText));
            last = data.at(-1)?.id;
            if (!hasMore) return pages;
          }
        };
        assert.deepEqual(await list('asc'), [['a', 'b'], ['c', 'd'], ['e']]);
        assert.deepEqual(await list('desc'), [['e', 'd'], ['c', 'b'], ['a']]);
      });

      test('responses are deleted after the retention, and read as gone before the sweep', async () => {
        const account = await newAccount();
        const old = await add(account, 'old');
        clock.turn(29 * dayMs);
        const young = await add(account, 'young', old.id);
        clock.turn(2 * dayMs);
        await refuses(404, () => store.get(account, old.id));
        await refuses(400, () => add(account, 'x', old.id));
        await store.sweep();
        assert.deepEqual(await countRows(account), [1, 2]);
        assert.equal((await store.get(account, young.id)).id, young.id);
        await refuses(400, () => read(account, young.id));
        clock.turn(30 * dayMs);
        await store.sweep();
        assert.deepEqual(await countRows(account), [0, 0]);
        assert.equal(await bytesOf(account), 0);
      });

      test('the oldest responses make room for new ones', async () => {
        const account = await newAccount();
        const small = new ResponseStore(db, clock, { ...options, maxBytes: 50_000 });
        const ids: string[] = [];
        for (let at = 0; at < 10; at++) {
          clock.turn(1_000);
          ids.push((await add(account, 'x'.repeat(5_000), null, small)).id);
        }
        assert(Number(await bytesOf(account)) <= 50_000);
        await refuses(404, () => store.get(account, ids[0] ?? ''));
        assert.equal((await store.get(account, ids[9] ?? '')).id, ids[9]);
        const { sum } = await db
          .selectFrom('responses')
          .select(({ fn }) => fn.sum<number>('bytes').as('sum'))
          .where('account_id', '=', account)
          .executeTakeFirstOrThrow();
        assert.equal(await bytesOf(account), Number(sum));
      });

      test('a response in progress ends once, and can not be continued before', async () => {
        const account = await newAccount();
        const place = await store.readContext(account, { input: 'go' });
        const queued: ResponseObject = { ...responseObject({ output: [] }), status: 'queued' };
        await store.insert(place, queued);
        const unfinished = await refuses(400, () => add(account, 'x', queued.id));
        assert.match(unfinished.message, /has not ended/);
        const completed = { ...queued, status: 'completed' as const, output: [say('went')] };
        const other = { ...queued, status: 'cancelled' as const };
        const ended = await Promise.all([
          store.complete(account, completed),
          store.complete(account, other),
        ]);
        assert.equal(ended.filter(Boolean).length, 1);
        assert.equal(await store.complete(account, completed), false);
        const [rows] = await db
          .selectFrom('responses')
          .select('bytes')
          .where('account_id', '=', account)
          .execute();
        assert.equal(await bytesOf(account), rows?.bytes);
      });
    });
  }

  const message = (text: string): InputItem => ({
    type: 'message',
    role: 'user',
    content: [{ type: 'input_text', text }],
  });

  function toText({ content }: InputItem): string {
    return Array.isArray(content) ? content.map(({ text }) => text).join('') : (content ?? '');
  }

  /** The same database, with its queries and the rows that they return counted. */
  function countQueries(db: Database) {
    const plugin: KyselyPlugin = {
      transformQuery: ({ node }) => {
        counted.queries++;
        return node;
      },
      transformResult: async ({ result }) => {
        counted.rows += result.rows.length;
        return result;
      },
    };
    const counted = { db: db.withPlugin(plugin), queries: 0, rows: 0 };
    return counted;
  }
});
