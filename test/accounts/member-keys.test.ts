// Who created a key, and what becomes of a member's keys and sessions when the member is removed.

import assert from 'node:assert';
import { describe, test } from 'node:test';
import { bothDatabases } from '#test/support/databases.ts';
import { type SessionFetch, startTestServer, type TestServer } from '#test/support/server.ts';

const api = '/dashboard/api';
const noSsh = { ssh_keys: [], machines: [] };

interface Key {
  id: string;
  label: string;
  key: string;
  created_by: { id: string; email: string | null } | null;
}

async function invite(server: TestServer, owner: SessionFetch, name: string) {
  const invited = await owner(`${api}/invitations`, { json: { role: 'member' } });
  const { link } = (await invited.json()) as { link: string };
  const session = await server.joinBy(link, `${name}@example.com`);
  const { id } = (await (await session(`${api}/me`)).json()) as { id: string };
  return { session, id };
}

const createKey = async (session: SessionFetch, label: string) =>
  (await (await session(`${api}/api-keys`, { json: { label } })).json()) as Key;

const listKeys = async (session: SessionFetch) => {
  const { data } = (await (await session(`${api}/api-keys`)).json()) as { data: Key[] };
  return new Map(data.map(({ label, created_by }) => [label, created_by]));
};

const sendWith = (server: TestServer, { key }: Key) =>
  server.fetch('/v1/models', { headers: { authorization: `Bearer ${key}` } });

for (const database of bothDatabases) {
  describe(`keys of members on ${database}`, () => {
    test('a key shows its creator, and is the owner’s who keeps it when the creator is removed', async () => {
      const server = await startTestServer({ database });
      const owner = await server.join();
      const { session, id } = await invite(server, owner, 'ann');
      assert.deepEqual((await createKey(session, 'hers')).created_by, {
        id,
        email: 'ann@example.com',
      });
      assert.equal((await listKeys(owner)).get('hers')?.email, 'ann@example.com');
      assert.equal((await listKeys(owner)).get('first'), null, 'the server created it');
      await owner(`${api}/members/${id}?keys=keep`, { method: 'DELETE' });
      assert.equal((await listKeys(owner)).get('hers')?.email, 'owner@example.com');
    });

    test('removing a member ends sessions and keys at once, and leaves those of others', async () => {
      const server = await startTestServer({ database });
      const owner = await server.join();
      const ann = await invite(server, owner, 'ann');
      const keys = [await createKey(ann.session, 'a'), await createKey(ann.session, 'b')];
      const kept = await createKey(owner, 'mine');
      for (const key of [...keys, kept]) assert.equal((await sendWith(server, key)).status, 200);
      const { data } = (await (await owner(`${api}/members`)).json()) as {
        data: { id: string; api_keys: number }[];
      };
      assert.deepEqual(
        data.map(({ id, api_keys }) => [id === ann.id, api_keys]),
        [
          [true, 2],
          [false, 1],
        ],
      );
      const removed = await owner(`${api}/members/${ann.id}`, { method: 'DELETE' });
      assert.deepEqual(await removed.json(), { ok: true, revoked_keys: 2, ...noSsh });
      assert.equal((await ann.session(`${api}/me`)).status, 401);
      for (const key of keys) assert.equal((await sendWith(server, key)).status, 401);
      assert.equal((await sendWith(server, kept)).status, 200);
      const log = (await (await owner(`${api}/audit-events?limit=3`)).json()) as {
        data: { action: string; user_email: string; details: { revoked_keys?: number } }[];
      };
      assert.deepEqual(
        log.data
          .map(({ action, user_email, details }) => [action, user_email, details.revoked_keys])
          .sort(),
        [
          ['api_key.revoked', 'owner@example.com', undefined],
          ['api_key.revoked', 'owner@example.com', undefined],
          ['member.removed', 'owner@example.com', 2],
        ],
      );
    });

    test('keys that are kept still work, and any other choice is refused', async () => {
      const server = await startTestServer({ database });
      const owner = await server.join();
      const { session, id } = await invite(server, owner, 'ann');
      const key = await createKey(session, 'a');
      const remove = (query: string) => owner(`${api}/members/${id}${query}`, { method: 'DELETE' });
      assert.equal((await remove('?keys=perhaps')).status, 400);
      assert.deepEqual(await (await remove('?keys=keep')).json(), {
        ok: true,
        revoked_keys: 0,
        ...noSsh,
      });
      assert.equal((await sendWith(server, key)).status, 200);
    });
  });
}
