// Joining, signing in, roles and sessions, through the dashboard's endpoints.

import assert from 'node:assert';
import { describe, test } from 'node:test';
import { createHandClock } from '#test/support/clock.ts';
import { databases } from '#test/support/databases.ts';
import { beginPost } from '#test/support/late-body.ts';
import { cookieOf, password, startTestServer, type TestServer } from '#test/support/server.ts';

const api = '/dashboard/api';
const login = (server: TestServer, email: string, secret = password, headers = {}) =>
  server.fetch(`${api}/login`, { json: { email, password: secret }, headers });

async function invite(server: TestServer, owner: TestServer['fetch'], role: string) {
  const response = await owner(`${api}/invitations`, { json: { role } });
  const { link } = (await response.json()) as { link: string };
  return server.joinBy(link, `invited-${role}@example.com`);
}

for (const database of databases) {
  describe(`people on ${database}`, () => {
    test('the set-up link works once, and a used one says so', async () => {
      const server = await startTestServer({ database });
      assert.match(server.setupLink ?? '', /^http:\/\/127\.0\.0\.1:\d+\/#\/join\/[A-Za-z0-9]{43}$/);
      const token = server.setupLink?.split('/').at(-1);
      const look = await server.fetch(`${api}/invitations/look`, { json: { token } });
      assert.deepEqual(await look.json(), { role: 'owner', account: 'Default', setup: true });
      const owner = await server.join();
      const me = (await (await owner(`${api}/me`)).json()) as { role: string; email: string };
      assert.equal(me.role, 'owner');
      const again = { token, email: 'thief@example.com', password };
      assert.equal((await server.fetch(`${api}/join`, { json: again })).status, 404);
      await server.stop();
      assert.equal((await startTestServer({ on: server })).setupLink, null);
    });

    test('links of two starts both work until one of them is used', async () => {
      const one = await startTestServer({ database });
      const other = await startTestServer({ on: one });
      assert(one.setupLink !== null && other.setupLink !== null);
      await one.joinBy(other.setupLink, 'owner@example.com');
      const token = one.setupLink.split('/').at(-1);
      const late = { token, email: 'late@example.com', password };
      assert.equal((await one.fetch(`${api}/join`, { json: late })).status, 404);
    });

    test('successful sign-ins do not count as attempts', async () => {
      const config = { accounts: { login_attempts: 1 } };
      const server = await startTestServer({ database, config });
      await server.join();
      for (let n = 0; n < 8; n++) {
        assert.equal((await login(server, 'owner@example.com')).status, 200);
      }
    });

    test('of two people who use one link at once, one joins', async () => {
      const server = await startTestServer({ database });
      const token = server.setupLink?.split('/').at(-1);
      const attempts = await Promise.all(
        [1, 2, 3, 4].map((n) =>
          server.fetch(`${api}/join`, { json: { token, email: `p${n}@example.com`, password } }),
        ),
      );
      assert.deepEqual(attempts.map(({ status }) => status).sort(), [200, 404, 404, 404]);
    });

    test('the cookie is HttpOnly and SameSite=Strict, and holds no id', async () => {
      const server = await startTestServer({ database });
      await server.join();
      const cookie = (await login(server, 'Owner@Example.com')).headers.getSetCookie()[0] ?? '';
      assert.match(cookie, /^millrace_session=[A-Za-z0-9]{43}; .*HttpOnly; SameSite=Strict$/);
    });

    test('an international domain is the same address in both of its spellings', async () => {
      const server = await startTestServer({ database });
      await server.joinBy(server.setupLink ?? '', 'Ann@xn--exmple-cua.com');
      for (const spelling of ['ann@exämple.com', 'ANN@EXÄMPLE.COM', 'ann@xn--exmple-cua.com']) {
        assert.equal((await login(server, spelling)).status, 200, spelling);
      }
    });

    test('nobody joins under the address of another person with invisible characters', async () => {
      const server = await startTestServer({ database });
      const token = server.setupLink?.split('/').at(-1);
      for (const invisible of ['\u200b', '\u202e', '\u00ad', '\u3164', '\u0007']) {
        const email = `own${invisible}er@example.com`;
        const response = await server.fetch(`${api}/join`, { json: { token, email, password } });
        assert.equal(response.status, 400);
        assert.match(await response.text(), /without invisible characters/);
      }
      await server.join('j\u00f6rg@example.com');
    });

    test('a wrong password and an unknown address get the same response', async () => {
      const server = await startTestServer({ database });
      await server.join();
      const wrong = await login(server, 'owner@example.com', 'not the password');
      const unknown = await login(server, 'nobody@example.com');
      assert.deepEqual([wrong.status, unknown.status], [401, 401]);
      assert.equal(await wrong.text(), await unknown.text());
    });

    test('guessing is throttled per account exactly, under concurrency and after a restart', async () => {
      const clock = createHandClock();
      const config = { accounts: { login_attempts: 5 } };
      const server = await startTestServer({ database, clock, config });
      await server.join();
      const guesses = await Promise.all(
        Array.from({ length: 12 }, (_, n) => login(server, 'owner@example.com', `guess ${n}`)),
      );
      const statuses = guesses.map(({ status }) => status);
      assert.equal(statuses.filter((status) => status === 401).length, 5);
      assert.equal(statuses.filter((status) => status === 429).length, 7);
      await server.stop();
      const again = await startTestServer({ on: server, clock, config });
      const right = await login(again, 'owner@example.com');
      assert.equal(right.status, 429);
      assert(Number(right.headers.get('retry-after')) > 800);
      clock.turn(15 * 60_000);
      assert.equal((await login(again, 'owner@example.com')).status, 200);
    });

    test('guessing many accounts from one address is throttled too', async () => {
      const server = await startTestServer({
        database,
        config: { accounts: { login_attempts: 2 }, server: { trusted_proxies: 1 } },
      });
      const from = (address: string) => ({ 'x-forwarded-for': address });
      for (let n = 0; n < 10; n++) {
        const attempt = await login(server, `u${n}@example.com`, password, from('203.0.113.7'));
        assert.equal(attempt.status, 401);
      }
      const over = await login(server, 'u11@example.com', password, from('203.0.113.7'));
      assert.equal(over.status, 429);
      const forged = await login(
        server,
        'u11@example.com',
        password,
        from('10.9.8.7, 203.0.113.7'),
      );
      assert.equal(
        forged.status,
        429,
        'what a client writes in front of the proxy’s word is not believed',
      );
      const elsewhere = await login(server, 'u12@example.com', password, from('203.0.113.8'));
      assert.equal(elsewhere.status, 401);
    });

    test('signing out ends the session', async () => {
      const server = await startTestServer({ database });
      const owner = await server.join();
      assert.equal((await owner(`${api}/logout`, { method: 'POST' })).status, 200);
      assert.equal((await owner(`${api}/me`)).status, 401);
    });

    test('a changed password ends the other sessions and is required from then on', async () => {
      const server = await startTestServer({ database });
      const here = await server.join();
      const there = server.withCookie(cookieOf(await login(server, 'owner@example.com')));
      assert.equal((await there(`${api}/me`)).status, 200);
      const next = 'a new and better one';
      const wrong = { current_password: 'wrong', new_password: next };
      assert.equal((await here(`${api}/password`, { json: wrong })).status, 400);
      const short = { current_password: password, new_password: 'short' };
      assert.equal((await here(`${api}/password`, { json: short })).status, 400);
      const right = { current_password: password, new_password: next };
      assert.equal((await here(`${api}/password`, { json: right })).status, 200);
      assert.equal((await here(`${api}/me`)).status, 200);
      assert.equal((await there(`${api}/me`)).status, 401);
      assert.equal((await login(server, 'owner@example.com')).status, 401);
      assert.equal((await login(server, 'owner@example.com', next)).status, 200);
    });

    test('a session expires after its days', async () => {
      const clock = createHandClock();
      const server = await startTestServer({
        database,
        clock,
        config: { accounts: { session_days: 2 } },
      });
      const owner = await server.join();
      clock.turn(2 * 86_400_000 - 1000);
      assert.equal((await owner(`${api}/me`)).status, 200);
      clock.turn(1000);
      assert.equal((await owner(`${api}/me`)).status, 401);
    });

    test('people can list and end their own sessions', async () => {
      const server = await startTestServer({ database });
      const here = await server.join();
      const there = server.withCookie(cookieOf(await login(server, 'owner@example.com')));
      const { data } = (await (await here(`${api}/sessions`)).json()) as {
        data: { id: string; current: boolean }[];
      };
      assert.equal(data.length, 2);
      const other = data.find(({ current }) => !current);
      await here(`${api}/sessions/${other?.id}`, { method: 'DELETE' });
      assert.equal((await there(`${api}/me`)).status, 401);
    });

    test('a viewer reads, a member uses, an owner manages', async () => {
      const server = await startTestServer({ database });
      const owner = await server.join();
      const member = await invite(server, owner, 'member');
      const viewer = await invite(server, owner, 'viewer');
      const tries: [string, RequestInit & { json?: unknown }, number[]][] = [
        [`${api}/api-keys`, {}, [200, 200, 200]],
        ['/v1/models', {}, [200, 200, 200]],
        ['/api/v1/ssh-keys', {}, [200, 200, 200]],
        [`${api}/api-keys`, { json: { label: 'x' } }, [200, 200, 403]],
        ['/api/v1/ssh-keys', { json: { name: 'x', public_key: 'nonsense' } }, [400, 400, 403]],
        ['/v1/completions', { json: { model: 'nope', prompt: 'x' } }, [404, 404, 403]],
        [`${api}/invitations`, {}, [200, 403, 403]],
        [`${api}/invitations`, { json: { role: 'member' } }, [200, 403, 403]],
        [`${api}/members/${'0'.repeat(32)}`, { method: 'DELETE' }, [404, 403, 403]],
      ];
      for (const [path, init, wanted] of tries) {
        const got: number[] = [];
        for (const session of [owner, member, viewer]) got.push((await session(path, init)).status);
        assert.deepEqual(got, wanted, `${init.json ? 'POST' : (init.method ?? 'GET')} ${path}`);
      }
    });

    test('a changed role applies to the next request, and a removed member is signed out', async () => {
      const server = await startTestServer({ database });
      const owner = await server.join();
      const member = await invite(server, owner, 'member');
      const { id } = (await (await member(`${api}/me`)).json()) as { id: string };
      await owner(`${api}/members/${id}`, { method: 'PATCH', json: { role: 'viewer' } });
      assert.equal((await member(`${api}/api-keys`, { json: { label: 'x' } })).status, 403);
      assert.equal((await owner(`${api}/members/${id}`, { method: 'DELETE' })).status, 200);
      assert.equal((await member(`${api}/me`)).status, 401);
      assert.equal((await login(server, 'invited-member@example.com')).status, 401);
    });

    test('everyone may leave, except the last owner', async () => {
      const server = await startTestServer({ database });
      const owner = await server.join();
      const leave = async (session: TestServer['fetch'], query = '') => {
        const { id } = (await (await session(`${api}/me`)).json()) as { id: string };
        return (await session(`${api}/members/${id}${query}`, { method: 'DELETE' })).status;
      };
      for (const role of ['member', 'viewer'] as const) {
        const session = await invite(server, owner, role);
        assert.equal(await leave(session, '?keys=keep'), 403, role);
        assert.equal(await leave(session), 200, role);
        assert.equal((await session(`${api}/me`)).status, 401, role);
      }
      assert.equal(await leave(owner), 403);
    });

    test('the last owner can’t be demoted or removed, even by concurrent requests', async () => {
      const server = await startTestServer({ database });
      const owner = await server.join();
      const other = await invite(server, owner, 'owner');
      const idOf = async (session: TestServer['fetch']) =>
        ((await (await session(`${api}/me`)).json()) as { id: string }).id;
      const [one, two] = [await idOf(owner), await idOf(other)];
      const [first, second] = await Promise.all([
        owner(`${api}/members/${two}`, { method: 'PATCH', json: { role: 'viewer' } }),
        other(`${api}/members/${one}`, { method: 'PATCH', json: { role: 'viewer' } }),
      ]);
      assert.deepEqual([first.status, second.status].sort(), [200, 403]);
    });

    test('a revoked or expired invitation does not work', async () => {
      const clock = createHandClock();
      const server = await startTestServer({ database, clock });
      const owner = await server.join();
      const make = async () =>
        (await (await owner(`${api}/invitations`, { json: { role: 'member' } })).json()) as {
          id: string;
          link: string;
        };
      const use = (link: string) =>
        server.fetch(`${api}/join`, {
          json: { token: link.split('/').at(-1), email: 'late@example.com', password },
        });
      const revoked = await make();
      await owner(`${api}/invitations/${revoked.id}`, { method: 'DELETE' });
      assert.equal((await use(revoked.link)).status, 404);
      const stale = await make();
      clock.turn(7 * 86_400_000);
      assert.equal((await use(stale.link)).status, 404);
    });

    test('what an owner left behind ends with the rights of the owner', async () => {
      const server = await startTestServer({ database });
      const owner = await server.join();
      const other = await invite(server, owner, 'owner');
      const { id } = (await (await other(`${api}/me`)).json()) as { id: string };
      const links: string[] = [];
      for (const role of ['owner', 'member']) {
        const made = await other(`${api}/invitations`, { json: { role } });
        links.push(((await made.json()) as { link: string }).link);
      }
      const tokenOf = (link = '') => link.split('/').at(-1);
      const post = async (path: string, json: object) =>
        (await server.fetch(`${api}/${path}`, { json })).status;
      const joinBy = (link?: string) =>
        post('join', { token: tokenOf(link), email: 'back@example.com', password });
      const begin = (path: string, json: object) =>
        beginPost(`${server.url}${path}`, { cookie: other.cookie }, JSON.stringify(json));
      const late = [
        await begin(`${api}/api-keys`, { label: 'late' }),
        await begin('/api/v1/ssh-keys', { name: 'late' }),
      ];
      const events = await other(`${api}/events`);
      await owner(`${api}/members/${id}`, { method: 'PATCH', json: { role: 'member' } });
      assert.equal(await joinBy(links[0]), 404);
      assert.equal(await post('invitations/look', { token: tokenOf(links[0]) }), 404);
      const listed = await owner(`${api}/invitations`);
      assert.deepEqual(((await listed.json()) as { data: unknown }).data, []);
      await owner(`${api}/members/${id}`, { method: 'DELETE' });
      assert.equal(await joinBy(links[1]), 404);
      for (const finish of late) assert.equal(await finish(), 401);
      // Ends: otherwise the test would time out.
      assert.match(await events.text(), /ready/);
    });

    test('a person whom another server has just removed changes nothing', async () => {
      // A session is cached for a second, which does not pass.
      const clock = createHandClock();
      const server = await startTestServer({ database, clock });
      const another = await startTestServer({ clock, on: server });
      const owner = await server.join();
      const { id: ownerId } = (await (await owner(`${api}/me`)).json()) as { id: string };
      const other = another.withCookie((await invite(server, owner, 'owner')).cookie);
      const { id } = (await (await other(`${api}/me`)).json()) as { id: string };
      await owner(`${api}/members/${id}`, { method: 'DELETE' });
      const created = await other(`${api}/api-keys`, { json: { label: 'late' } });
      assert.equal(created.status, 401);
      const demoted = { method: 'PATCH', json: { role: 'viewer' } };
      assert.equal((await other(`${api}/members/${ownerId}`, demoted)).status, 401);
    });

    test('a cookie sent by another site’s page changes nothing', async () => {
      const server = await startTestServer({ database });
      const owner = await server.join();
      const json = { label: 'stolen' };
      for (const headers of [
        { 'sec-fetch-site': 'cross-site' },
        { 'sec-fetch-site': 'same-site' },
        { origin: 'https://evil.example' },
        { origin: 'null' },
      ]) {
        assert.equal((await owner(`${api}/api-keys`, { json, headers })).status, 403);
        assert.equal(
          (await owner('/api/v1/ssh-keys', { json: { name: 'x' }, headers })).status,
          403,
        );
      }
      const ownPage = { origin: server.url, 'sec-fetch-site': 'same-origin' };
      assert.equal((await owner(`${api}/api-keys`, { json, headers: ownPage })).status, 200);
    });
  });
}
