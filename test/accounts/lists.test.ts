// Lists stay bounded however much they hold: pages that follow each other, and searching.

import assert from 'node:assert';
import { describe, test } from 'node:test';
import { openExistingDatabase } from '#db/open.ts';
import type { ApiKeyRow } from '#db/tables/account-rows.ts';
import { bothDatabases } from '#test/support/databases.ts';
import { type SessionFetch, startTestServer, type TestServer } from '#test/support/server.ts';

const api = '/dashboard/api';

interface Listed {
  data: { id: string; label: string }[];
  next: string | null;
}

async function read(session: SessionFetch, path: string): Promise<Listed> {
  const response = await session(`${api}/${path}`);
  assert.equal(response.status, 200);
  return (await response.json()) as Listed;
}

async function readAll(session: SessionFetch, path: string): Promise<string[]> {
  const ids: string[] = [];
  for (let before = ''; ; ) {
    const { data, next } = await read(session, `${path}${before}`);
    ids.push(...data.map(({ id }) => id));
    if (next === null) return ids;
    before = `&before=${next}`;
  }
}

/** Many keys of the same moment, so that pages end between them. */
async function addKeys(server: TestServer, count: number): Promise<void> {
  const { databaseUrl: url, dataDir } = server;
  const db = await openExistingDatabase({ url, poolSize: 1, dataDir });
  const first = await db.selectFrom('api_keys').selectAll().executeTakeFirstOrThrow();
  const toKey = (n: number): ApiKeyRow => {
    const id = n.toString(16).padStart(32, '0');
    return { ...first, id, hash: id, label: `Program ${n}`, created_at: 1000 + (n % 7) };
  };
  for (let n = 0; n < count; n += 500) {
    const rows = Array.from({ length: Math.min(500, count - n) }, (_, at) => toKey(n + at));
    await db.insertInto('api_keys').values(rows).execute();
  }
  await db.destroy();
}

for (const database of bothDatabases) {
  describe(`lists on ${database}`, () => {
    test('ten thousand API keys come in pages of at most 250 KB, each key once', async () => {
      const server = await startTestServer({ database });
      const owner = await server.join();
      await addKeys(server, 10_000);
      const page = await (await owner(`${api}/api-keys?limit=500`)).text();
      assert(page.length < 250_000, `${page.length} bytes`);
      assert.equal((await read(owner, 'api-keys')).data.length, 50, 'also if no limit is given');
      const ids = await readAll(owner, 'api-keys?limit=500');
      assert.deepEqual([ids.length, new Set(ids).size], [10_001, 10_001]);
      for (const limit of ['0', '501', 'all']) {
        assert.equal((await owner(`${api}/api-keys?limit=${limit}`)).status, 400, limit);
      }
    });

    test('keys are found by part of the label in any case, and by id', async () => {
      const server = await startTestServer({ database });
      const owner = await server.join();
      await addKeys(server, 20);
      await owner(`${api}/api-keys`, { json: { label: '100% Über_all\\' } });
      const search = async (text: string) =>
        (await read(owner, `api-keys?search=${encodeURIComponent(text)}`)).data.map(
          ({ label }) => label,
        );
      assert.deepEqual((await search('PROGRAM 1')).length, 11);
      assert.deepEqual(await search(`${'0'.repeat(31)}5`), ['Program 5']);
      for (const text of ['100%', 'R_A', 'all\\', '100% Über_all\\']) {
        assert.deepEqual(await search(text), ['100% Über_all\\'], text);
      }
      assert.deepEqual(await search('1_0'), [], 'an underscore stands for itself');
    });

    test('members, invitations, sessions and events come in pages too', async () => {
      const server = await startTestServer({ database });
      const owner = await server.join();
      for (let n = 0; n < 3; n++) {
        const invited = await owner(`${api}/invitations`, { json: { role: 'viewer' } });
        const { link } = (await invited.json()) as { link: string };
        await server.joinBy(link, `viewer${n}@example.com`);
        await owner(`${api}/invitations`, { json: { role: 'viewer' } });
        const right = { email: 'owner@example.com', password: 'correct horse battery' };
        await server.fetch(`${api}/login`, { json: right });
      }
      for (const [path, count] of [
        ['members', 4],
        ['invitations', 3],
        ['sessions', 4],
      ] as const) {
        const { data, next } = await read(owner, `${path}?limit=2`);
        assert.deepEqual([data.length, next === null], [2, false], path);
        const ids = await readAll(owner, `${path}?limit=2`);
        assert.deepEqual([ids.length, new Set(ids).size], [count, count], path);
      }
    });
  });
}
