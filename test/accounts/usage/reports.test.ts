// Reading usage back: pages that stay in order while rows arrive, spans and their bounds, CSV that
// spreadsheets can open safely, and lists that read little of many rows.

import assert from 'node:assert';
import { before, describe, test } from 'node:test';
import { sql } from 'kysely';
import { createUsageRequests, type RequestFilter } from '#accounts/usage/requests.ts';
import { readLatency } from '#accounts/usage/samples.ts';
import type {
  UsageLive,
  UsageRequest,
  UsageRequestPage,
  UsageSummary,
} from '#accounts/usage/schema.ts';
import { createUsageSummaries } from '#accounts/usage/summaries.ts';
import { createUsageWriter } from '#accounts/usage/writing/writer.ts';
import { openDatabase } from '#db/open.ts';
import type { Database } from '#db/tables/tables.ts';
import type { UsageRequestRow } from '#db/tables/usage-rows.ts';
import { bothDatabases } from '#test/support/databases.ts';
import { explain } from '#test/support/explain.ts';
import { type SessionFetch, startTestServer } from '#test/support/server.ts';
import { accountId, endedRow, nextId, openTestUsage } from '#test/support/usage/usage.ts';

const hourMs = 3_600_000;
const now = Date.parse('2026-11-15T12:30:00Z');

const row = (over: Partial<UsageRequestRow> = {}) => endedRow({ at: now, ...over });

for (const database of bothDatabases) {
  describe(`usage read back on ${database}`, () => {
    let owner: SessionFetch;
    let db: Database;
    let account: string;
    const read = async <Data>(path: string) =>
      (await (await owner(`/dashboard/api${path}`)).json()) as Data;

    before(async () => {
      const server = await startTestServer({ database });
      owner = await server.join();
      account = (await read<{ account_id: string }>('/me')).account_id;
      const { databaseUrl: url, dataDir } = server;
      db = await openDatabase({ url, poolSize: 2, dataDir });
    });

    test('pages have no gaps or repeats, even for equal times, while rows arrive', async () => {
      const batch = createUsageWriter(db);
      const old = Array.from({ length: 95 }, (_, index) =>
        row({ account_id: account, model: 'pages', at: now - Math.floor(index / 10) * 1000 }),
      );
      await batch.write(old);
      const seen: string[] = [];
      let next: string | null = null;
      do {
        const mark: string = next === null ? '' : `&before=${next}`;
        const page: UsageRequestPage = await read(`/usage/requests?model=pages&limit=10${mark}`);
        seen.push(...page.data.map(({ id }) => id));
        next = page.next;
        await batch.write([row({ account_id: account, model: 'pages', at: now + seen.length })]);
      } while (next !== null);
      assert.equal(seen.length, 95);
      assert.deepEqual([...seen].sort(), old.map(({ id }) => id).sort());
    });

    test('filters combine, and invalid ones are refused', async () => {
      const key = 'f'.repeat(32);
      const strange = { account_id: account, key_id: key, model: 'filters' };
      await createUsageWriter(db).write([
        row({ ...strange, status: 'failed', code: 'upstream_error' }),
        row({ ...strange, status: 'aborted' }),
        row({ ...strange, backend: '' }),
      ]);
      const count = async (query: string) =>
        (await read<UsageRequestPage>(`/usage/requests?${query}`)).data.length;
      assert.equal(await count(`key=${key}`), 3);
      assert.equal(await count(`key=${key}&status=failed`), 1);
      assert.equal(await count(`model=filters&status=aborted`), 1);
      assert.equal(await count(`model=filters&status=done`), 1);
      assert.equal(await count(`model=filters&status=running`), 0);
      for (const query of ['limit=0', 'limit=501', 'status=odd', 'before=1', 'key=x', 'what=1']) {
        assert.equal((await owner(`/dashboard/api/usage/requests?${query}`)).status, 400, query);
      }
    });

    test('one request is found by its id, with or without its time', async () => {
      const mine = row({ account_id: account, model: 'single' });
      const theirs = row({ account_id: 'e'.repeat(32), model: 'single' });
      await createUsageWriter(db).write([mine, theirs]);
      const path = `/usage/requests/${mine.id}`;
      assert.equal((await read<UsageRequest>(path)).model, 'single');
      const { at } = await read<UsageRequest>(`${path}?at=${new Date(now).toISOString()}`);
      assert.equal(Date.parse(at), now);
      for (const missing of [
        `${mine.id}?at=${new Date(now + 1).toISOString()}`,
        theirs.id,
        `${theirs.id}?at=${new Date(now).toISOString()}`,
      ]) {
        assert.equal((await owner(`/dashboard/api/usage/requests/${missing}`)).status, 404);
      }
    });

    test('percentiles are of the completed requests of a model or key since a time', async () => {
      const timed = { account_id: account, model: 'timed', key_id: 'd'.repeat(32) };
      await createUsageWriter(db).write([
        ...Array.from({ length: 100 }, (_, at) =>
          row({ ...timed, duration_ms: at + 1, first_token_ms: at < 10 ? at + 1 : null }),
        ),
        row({ ...timed, status: 'failed', duration_ms: 100_000 }),
        row({ ...timed, at: now - 1, duration_ms: 100_000 }),
      ]);
      const from = `from=${new Date(now).toISOString()}`;
      for (const subject of ['model=timed', `key=${timed.key_id}`]) {
        assert.deepEqual(await read(`/usage/latency?${subject}&${from}`), {
          requests: 100,
          duration_ms: { p50: 50, p95: 95 },
          first_token_ms: { p50: 5, p95: 10 },
        });
      }
      const none = await read(`/usage/latency?model=never-asked&${from}`);
      assert.deepEqual(none, { requests: 0, duration_ms: null, first_token_ms: null });
    });

    test('the last minute has its requests, errors and tokens', async () => {
      const before = await read<UsageLive>('/usage/live');
      const at = Date.now();
      await createUsageWriter(db).write([
        row({ account_id: account, at }),
        row({ account_id: account, at, status: 'failed' }),
        row({ account_id: account, at: at - 120_000 }),
      ]);
      const after = await read<UsageLive>('/usage/live');
      assert.deepEqual([after.requests - before.requests, after.errors - before.errors], [2, 1]);
      assert.deepEqual([after.tokens - before.tokens, after.span_ms], [30, 60_000]);
    });

    test('sums can be of one model or key, and unknown models share a sum', async () => {
      const at = Date.parse('2025-05-01T00:00:00Z');
      const key_id = 'c'.repeat(32);
      const unknown = { status: 'refused', code: 'model_not_found' } as const;
      await createUsageWriter(db).write([
        row({ account_id: account, at, key_id, model: 'one' }),
        row({ account_id: account, at, model: 'one' }),
        row({ account_id: account, at, model: 'typo-1', ...unknown }),
        row({ account_id: account, at, model: 'typo-2', ...unknown }),
      ]);
      const span = 'by=model&from=2025-05-01T00:00:00Z&to=2025-05-02T00:00:00Z';
      const groups = async (query: string) =>
        (await read<UsageSummary>(`/usage?${span}${query}`)).data.map((bucket) => [
          bucket.group,
          bucket.requests,
        ]);
      assert.deepEqual(await groups(''), [
        [null, 2],
        ['one', 2],
      ]);
      assert.deepEqual(await groups('&model=one'), [['one', 2]]);
      assert.deepEqual(await groups(`&key=${key_id}`), [['one', 1]]);
    });

    test('another account’s usage is not shown', async () => {
      await createUsageWriter(db).write([row({ account_id: 'e'.repeat(32), model: 'theirs' })]);
      const { data } = await read<UsageRequestPage>('/usage/requests?model=theirs');
      assert.deepEqual(data, []);
      const span = 'from=2026-11-01T00:00:00Z&to=2026-11-30T00:00:00Z';
      const summary = await read<UsageSummary>(`/usage?by=model&${span}`);
      assert(!summary.data.some(({ group }) => group === 'theirs'));
      for (const path of [`/usage.csv?by=model&${span}`, `/usage/requests.csv?${span}`]) {
        const text = await (await owner(`/dashboard/api${path}`)).text();
        assert(text.includes('filters') && !text.includes('theirs'), path);
      }
    });

    test('hours and days start at their UTC boundaries, and empty ones are omitted', async () => {
      const at = Date.parse('2025-03-01T00:00:00Z');
      const model = 'spans';
      await createUsageWriter(db).write([
        row({ account_id: account, model, at: at - 1, first_token_ms: 10 }),
        row({ account_id: account, model, at, first_token_ms: 5 }),
        row({ account_id: account, model, at: at + 10, first_token_ms: null, status: 'failed' }),
        row({ account_id: account, model, at: at + 23 * hourMs, first_token_ms: 6 }),
      ]);
      const query = 'by=model&from=2025-03-01T00:30:00Z&to=2025-03-03T00:00:00Z';
      const days = await read<UsageSummary>(`/usage?${query}&step=day`);
      assert.equal(days.from, '2025-03-01T00:00:00.000Z');
      assert.deepEqual(days.data, [
        {
          start: '2025-03-01T00:00:00.000Z',
          group: model,
          label: null,
          requests: 3,
          errors: 1,
          refused: 0,
          aborted: 0,
          prompt_tokens: 30,
          completion_tokens: 15,
          cached_tokens: 0,
          cost: 75e-9,
          first_token_ms: 5.5,
        },
      ]);
      const hours = await read<UsageSummary>(`/usage?${query}&step=hour`);
      assert.deepEqual(
        hours.data.map(({ start, requests }) => [start, requests]),
        [
          ['2025-03-01T00:00:00.000Z', 2],
          ['2025-03-01T23:00:00.000Z', 1],
        ],
      );
    });

    test('periods that are too long or invalid are refused', async () => {
      for (const query of [
        'step=hour&from=2026-01-01T00:00:00Z&to=2026-02-11T00:00:01Z',
        'from=2025-01-01T00:00:00Z&to=2026-11-01T00:00:00Z',
        'from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z',
        'from=2016-12-31T23:59:60Z&to=2017-01-01T00:00:00Z',
        'from=yesterday',
        'step=week',
        'by=color',
      ]) {
        for (const path of ['/usage', '/usage.csv']) {
          assert.equal((await owner(`/dashboard/api${path}?${query}`)).status, 400, query);
        }
      }
    });

    test('CSV is quoted correctly, and no cell is a formula', async () => {
      const at = Date.parse('2024-06-01T00:00:00Z');
      const models = ['=cmd|x', '+1', '-1', '@sum', '\tx', 'a,"b"\r\nc', 'plain'];
      const label = '=HYPERLINK("http://x","y")';
      const made = await owner('/dashboard/api/api-keys', { json: { label } });
      const { id } = (await made.json()) as { id: string };
      const rows = models.map((model, index) =>
        row({ account_id: account, key_id: id, model, at: at + index, cost_nano: 1 }),
      );
      await createUsageWriter(db).write(rows);
      const span = 'from=2024-06-01T00:00:00Z&to=2024-06-02T00:00:00Z';
      const response = await owner(`/dashboard/api/usage/requests.csv?${span}`);
      assert.equal(response.headers.get('content-type'), 'text/csv; charset=utf-8');
      assert.match(response.headers.get('content-disposition') ?? '', /^attachment; filename="/);
      const [header, ...lines] = parseCsv(await response.text());
      assert.equal(header?.[3], 'model');
      assert.deepEqual(
        lines.map((line) => line[3]),
        ["'=cmd|x", "'+1", "'-1", "'@sum", "'\tx", 'a,"b"\r\nc', 'plain'],
      );
      assert.deepEqual(new Set(lines.map((line) => line[7])), new Set([`'${label}`]));
      assert.equal(lines[0]?.[header?.indexOf('cost') ?? -1], '0.000000001');
      const narrowed = async (filter: string) => {
        const csv = await owner(`/dashboard/api/usage/requests.csv?${span}&${filter}`);
        return parseCsv(await csv.text()).slice(1).length;
      };
      assert.deepEqual(
        [
          await narrowed('model=plain'),
          await narrowed(`key=${id}`),
          await narrowed(`key=${'9'.repeat(32)}`),
          await narrowed('status=done'),
          await narrowed('status=failed'),
        ],
        [1, 7, 0, 7, 0],
      );
      const sums = parseCsv(await (await owner(`/dashboard/api/usage.csv?by=key&${span}`)).text());
      assert.deepEqual(sums[1]?.slice(0, 4), ['2024-06-01T00:00:00.000Z', id, `'${label}`, '7']);
    });

    test('an export has every row once, and the same sums as the list', async () => {
      const at = Date.parse('2024-01-10T05:00:00Z');
      const batch = createUsageWriter(db);
      const rows = Array.from({ length: 1203 }, (_, index) =>
        row({ account_id: account, at: at + Math.floor(index / 7) * 60_000 }),
      );
      await batch.write(rows);
      const span = 'from=2024-01-10T00:00:00Z&to=2024-01-12T00:00:00Z';
      const text = await (await owner(`/dashboard/api/usage/requests.csv?${span}`)).text();
      const ids = parseCsv(text).map(([id]) => id);
      assert.deepEqual(ids.slice(1).sort(), rows.map(({ id }) => id).sort());
      const { data } = await read<UsageSummary>(`/usage?step=hour&${span}`);
      const csv = await (await owner(`/dashboard/api/usage.csv?step=hour&${span}`)).text();
      assert.deepEqual(
        parseCsv(csv)
          .slice(1)
          .map((line) => [line[0], Number(line[3]), Number(line[9])]),
        data.map(({ start, requests, cost }) => [start, requests, cost]),
      );
      await db.destroy();
    });

    test('of 50,000 rows lists and filters read little more than their page', async () => {
      const { db: own } = await openTestUsage(database);
      await fill(own);
      // PostgreSQL does this by itself when a table has grown, only not at once.
      if (database === 'postgres') await sql`analyze`.execute(own);
      const page = (over: RequestFilter & { before?: string } = {}, index = /index/i) => ({
        over,
        index,
        ask: (db: Database) => createUsageRequests(db).page(accountId, { limit: 100, ...over }),
      });
      const span = { from: now - 24 * hourMs, to: now, step: 'hour', by: 'key' } as const;
      const asks = [
        page(),
        page({ before: `${now - 2e9}.${nextId()}` }),
        page({ model: 'rare' }, /usage_requests_by_model/),
        page({ status: 'failed' }, /usage_requests_by_status/),
        page({ key: `${'b'.repeat(31)}3` }, /usage_requests_by_key/),
        page({ model: 'other', from: now - 24 * hourMs }, /usage_requests_by_model/),
        {
          over: {},
          index: /usage_requests_by_key/,
          ask: (db: Database) =>
            readLatency(createUsageRequests(db), accountId, {
              from: now - 24 * hourMs,
              key: `${'b'.repeat(31)}3`,
            }),
        },
        {
          over: {},
          index: /index/i,
          ask: (db: Database) => createUsageRequests(db).find(accountId, nextId(), undefined),
        },
        // Nothing has this name, so nothing is read.
        page({ key: '9'.repeat(32) }, /^$/),
        {
          over: span,
          index: /index/i,
          ask: (db: Database) => createUsageSummaries(db).list(accountId, span),
        },
      ];
      for (const { over, index, ask } of asks) {
        const plan = await explain(own, ask);
        const what = `${JSON.stringify(over)}\n${plan}`;
        assert.match(plan, index, what);
        assert.doesNotMatch(plan, /Seq Scan on usage_|SCAN u\b/, what);
        // Sorting a page would mean to have read all that could be on it, unless only those of one moment are sorted.
        if (over !== span) assert.doesNotMatch(plan, /TEMP B-TREE FOR ORDER|^\W*Sort {2}/m, what);
      }
    });
  });
}

/** 50,000 requests over 29 days; one is of a rare model, another one failed. */
async function fill(db: Database): Promise<void> {
  const keyOf = (n: number) => `${'b'.repeat(31)}${n}`;
  const keys = [0, 1, 2, 3, 4].map(keyOf);
  const names = [...keys, accountId, 'chat', 'rare', 'other', 'common', 'm', 'one'];
  for (const [at, name] of names.entries()) {
    await db
      .insertInto('usage_names')
      .values({ ref: at + 1, name, last_day: 20_000 })
      .execute();
  }
  const refOf = (name: string) => sql.lit(names.indexOf(name) + 1);
  await sql`
    with recursive numbers(i) as (select 0 union all select i + 1 from numbers where i < 49999)
    insert into usage_requests (id, account_ref, key_ref, operation_ref, model_ref, served_model_ref,
      backend_ref, at, status, prompt_tokens, completion_tokens, cached_tokens, duration_ms, cost_nano)
    select ${'a'.repeat(26)} || cast(100000 + i as text), ${refOf(accountId)}, ${refOf(keyOf(0))} + i % 5,
      ${refOf('chat')},
      case when i = 49999 then ${refOf('rare')} when i % 4 = 0 then ${refOf('other')}
        else ${refOf('common')} end,
      ${refOf('m')}, ${refOf('one')}, ${sql.lit(now)} - cast(i as bigint) * 50000,
      case when i = 49998 then 'failed' else 'done' end, 10, 5, 0, 20, 25
    from numbers`.execute(db);
  await sql`
    insert into usage_hours select ${sql.lit(accountId)}, at - at % 3600000, k.name, m.name, 'one',
      count(*), 0, 0, 10, 5, 0, 25, 0, 0, 0
    from usage_requests join usage_names k on k.ref = key_ref join usage_names m on m.ref = model_ref
    group by 2, 3, 4`.execute(db);
}

/** RFC 4180, as a spreadsheet reads it. */
function parseCsv(text: string): string[][] {
  const lines: string[][] = [[]];
  for (const [, quoted, plain, end] of text.matchAll(/(?:"((?:[^"]|"")*)"|([^,\r\n]*))(,|\r\n)/g)) {
    lines.at(-1)?.push(quoted?.replaceAll('""', '"') ?? plain ?? '');
    if (end === '\r\n') lines.push([]);
  }
  return lines.slice(0, -1);
}
