// Every change leaves an audit event with actor, address and time.

import assert from 'node:assert';
import { describe, test } from 'node:test';
import { createHandClock } from '#test/support/clock.ts';
import { bothDatabases } from '#test/support/databases.ts';
import { password, startTestServer } from '#test/support/server.ts';

const api = '/dashboard/api';
const publicKey =
  'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHUFkDQuBDRFdZxRcVz4BhnMJE4wT7TRnl/mBQbqQHxR me@laptop';

interface Event {
  id: string;
  at: string;
  action: string;
  resource_name: string | null;
  user_id: string | null;
  api_key_id: string | null;
  address: string;
  details: Record<string, unknown>;
}

for (const database of bothDatabases) {
  describe(`audit on ${database}`, () => {
    test('changes by people, keys and unauthenticated clients are logged, newest first', async () => {
      const server = await startTestServer({ database });
      const owner = await server.join();
      await server.fetch(`${api}/login`, {
        json: { email: 'owner@example.com', password: 'wrong' },
      });
      const made = (await (await owner(`${api}/api-keys`, { json: { label: 'k' } })).json()) as {
        id: string;
      };
      await owner(`${api}/api-keys/${made.id}`, { method: 'DELETE' });
      await server.fetch('/api/v1/ssh-keys', { json: { name: 'laptop', public_key: publicKey } });
      const { data } = (await (await owner(`${api}/audit-events`)).json()) as { data: Event[] };
      assert.deepEqual(
        data.map(({ action }) => action),
        [
          'ssh_key.created',
          'api_key.revoked',
          'api_key.created',
          'user.login_failed',
          'user.joined',
          'invitation.created',
          'api_key.created',
          'account.created',
        ],
      );
      const joined = data.find(({ action }) => action === 'user.joined');
      assert(joined?.user_id, 'the log says who joined');
      const [byKey, byPerson] = data;
      assert(byKey?.api_key_id && byKey.user_id === null);
      assert(byPerson?.user_id && byPerson.api_key_id === null);
      assert.equal(byPerson.address, '127.0.0.1');
      assert(Math.abs(Date.parse(byPerson.at) - Date.now()) < 60_000);
      const all = JSON.stringify(data);
      assert(!all.includes(password) && !all.includes('secret_'), 'the log holds a secret');
    });

    test('pages follow each other without gaps or repeats', async () => {
      const server = await startTestServer({ database });
      const owner = await server.join();
      for (let n = 0; n < 7; n++) await owner(`${api}/api-keys`, { json: { label: `k${n}` } });
      const seen: string[] = [];
      let before = '';
      do {
        const page = (await (await owner(`${api}/audit-events?limit=3${before}`)).json()) as {
          data: Event[];
          next: string | null;
        };
        seen.push(...page.data.map(({ id }) => id));
        before = page.next === null ? '' : `&before=${page.next}`;
      } while (before !== '');
      assert.equal(seen.length, 11);
      assert.equal(new Set(seen).size, 11);
      const filtered = await owner(`${api}/audit-events?action=user.joined`);
      assert.equal(((await filtered.json()) as { data: Event[] }).data.length, 1);
      assert.equal((await owner(`${api}/audit-events?limit=0`)).status, 400);
      assert.equal((await owner(`${api}/audit-events?before=x`)).status, 400);
    });

    test('the log can be filtered by actor and time', async () => {
      const clock = createHandClock();
      const server = await startTestServer({ database, clock });
      const owner = await server.join();
      clock.turn(1000);
      await owner(`${api}/api-keys`, { json: { label: 'k' } });
      clock.turn(60_000);
      const since = new Date(clock.now()).toISOString();
      await server.fetch('/api/v1/ssh-keys', { json: { name: 'laptop', public_key: publicKey } });
      const list = async (query: string) => {
        const response = await owner(`${api}/audit-events?${query}`);
        return ((await response.json()) as { data: Event[] }).data;
      };
      const [newest] = await list('limit=1');
      assert.equal(newest?.resource_name, 'laptop');
      const { id: userId } = (await (await owner(`${api}/me`)).json()) as { id: string };
      const actions = (events: Event[]) => events.map(({ action }) => action);
      assert.deepEqual(actions(await list(`user_id=${userId}`)), [
        'api_key.created',
        'user.joined',
      ]);
      assert.deepEqual(actions(await list(`api_key_id=${newest?.api_key_id}`)), [
        'ssh_key.created',
      ]);
      assert.deepEqual(actions(await list(`from=${since}`)), ['ssh_key.created']);
      assert(!actions(await list(`to=${since}`)).includes('ssh_key.created'));
      assert.equal((await owner(`${api}/audit-events?from=yesterday`)).status, 400);
      const leap = '2016-12-31T23:59:60Z';
      assert.equal((await owner(`${api}/audit-events?from=${leap}`)).status, 400);
    });
  });
}
