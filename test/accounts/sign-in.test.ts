// Signing in under attack: which failures count against whom, and what a stranger can't do to an owner.

import assert from 'node:assert';
import { describe, test } from 'node:test';
import { createAudit } from '#accounts/audit/audit.ts';
import { createDevices } from '#accounts/people/devices.ts';
import { Invitations } from '#accounts/people/invitations.ts';
import { createPasswordResets } from '#accounts/people/password-resets.ts';
import { Sessions } from '#accounts/people/sessions.ts';
import { SignIn } from '#accounts/people/sign-in.ts';
import { createThrottle } from '#accounts/people/throttle.ts';
import { toNetwork } from '#lib/network/client-network.ts';
import { createHandClock } from '#test/support/clock.ts';
import { databases } from '#test/support/databases.ts';
import { password, startTestServer, type TestServer } from '#test/support/server.ts';
import { openTestUsage } from '#test/support/usage/usage.ts';

const email = 'owner@example.com';

interface Attempt {
  from?: string;
  secret?: string;
  device?: string;
}

async function login(server: TestServer, { from, secret = password, device }: Attempt = {}) {
  const response = await server.fetch('/dashboard/api/login', {
    json: { email, password: secret },
    headers: {
      ...(from === undefined ? {} : { 'x-forwarded-for': from }),
      ...(device === undefined ? {} : { cookie: `millrace_device=${device}` }),
    },
  });
  return { status: response.status, ...deviceOf(response) };
}

function deviceOf({ headers }: Response) {
  const cookie = headers.getSetCookie().find((set) => set.startsWith('millrace_device='));
  return { cookie, device: cookie?.split(';')[0]?.split('=')[1] };
}

for (const database of databases) {
  describe(`sign-in on ${database}`, () => {
    const clock = createHandClock();
    const start = async () => {
      const config = { accounts: { login_attempts: 2 }, server: { trusted_proxies: 1 } };
      const server = await startTestServer({ database, clock, config });
      await server.join();
      return server;
    };
    /** Guesses until the limit of the account over all addresses is used up. */
    async function guessFromEverywhere(server: TestServer): Promise<number> {
      let guesses = 0;
      for (let n = 0; n < 15; n++) {
        for (let again = 0; again < 3; again++) {
          const { status } = await login(server, { from: `203.0.113.${n}`, secret: 'a guess' });
          if (status === 401) guesses++;
        }
      }
      return guesses;
    }

    test('a new password that is too short does not count as an attempt', async () => {
      const config = { accounts: { login_attempts: 2 } };
      const session = await (await startTestServer({ database, clock, config })).join();
      const change = async (next: string) => {
        const json = { current_password: password, new_password: next };
        const response = await session('/dashboard/api/password', { json });
        const { error } = (await response.json()) as { error?: { param: string } };
        return [response.status, error?.param];
      };
      for (let n = 0; n < 3; n++) assert.deepEqual(await change('short'), [400, 'new_password']);
      assert.deepEqual(await change('long enough to be one'), [200, undefined]);
    });

    test('strangers at many addresses get few guesses, and lock no known browser out', async () => {
      const server = await start();
      const { device, cookie } = await login(server, { from: '198.51.100.1' });
      assert.match(cookie ?? '', /; Path=\/dashboard\/api\/login; HttpOnly; SameSite=Strict$/);
      assert.equal(await guessFromEverywhere(server), 20, 'ten times the limit of one address');
      assert.equal((await login(server, { from: '192.0.2.1' })).status, 429);
      const known = { from: '203.0.113.1', device: device as string };
      assert.equal((await login(server, known)).status, 200, 'even from a throttled address');
    });

    test('a known browser gets few guesses too, and only for its own user', async () => {
      const server = await start();
      const { device } = await login(server);
      const known = { device: device as string };
      assert.equal((await login(server, known)).device, device, 'the browser keeps its token');
      const statuses: number[] = [];
      for (let n = 0; n < 3; n++) {
        statuses.push((await login(server, { ...known, secret: `guess ${n}` })).status);
      }
      assert.deepEqual(statuses, [401, 401, 429]);
      assert.equal((await login(server, known)).status, 429);
      clock.turn(15 * 60_000);
      assert.equal((await login(server, known)).status, 200);
      const other = await server.fetch('/dashboard/api/login', {
        json: { email: 'other@example.com', password },
        headers: { cookie: `millrace_device=${device}` },
      });
      assert.equal(other.status, 401);
    });

    test('a changed password forgets known browsers, except the one that changed it', async () => {
      const config = { accounts: { login_attempts: 2 }, server: { trusted_proxies: 1 } };
      const server = await startTestServer({ database, clock, config });
      const session = await server.join();
      const { device } = await login(server);
      const json = { current_password: password, new_password: 'another password' };
      const changed = await session('/dashboard/api/password', { json });
      assert.equal(changed.status, 200);
      await guessFromEverywhere(server);
      const again = { from: '192.0.2.1', secret: 'another password' };
      assert.equal((await login(server, { ...again, device: device as string })).status, 429);
      const kept = deviceOf(changed);
      assert.match(kept.cookie ?? '', /; Path=\/dashboard\/api\/login; HttpOnly; SameSite=Strict$/);
      assert.equal((await login(server, { ...again, device: kept.device as string })).status, 200);
    });

    test('a password that is replaced while it is verified opens no session and sets no password', async () => {
      const { db } = await openTestUsage(database);
      const audit = createAudit(clock);
      const sessions = new Sessions(db, clock, audit, { sessionDays: 1 });
      const invitations = new Invitations(db, clock, audit, { invitationDays: 1 });
      const passwordResets = createPasswordResets(db, clock, audit);
      const visitor = { address: '192.0.2.1', userAgent: 'test', device: undefined };
      let resets = 0;
      // Called between the verification and the transaction that follows it.
      const reset = async () => {
        const { token } = (await passwordResets.create(email))!;
        await signIn.reset(token, `new password ${++resets}`, visitor);
      };
      const throttle = { ...createThrottle(db, clock), reset };
      const parts = { audit, sessions, devices: createDevices(db, clock), throttle };
      const links = { invitations, passwordResets };
      const signIn = new SignIn(db, clock, { ...parts, ...links }, { loginAttempts: 10 });
      const { id: accountId } = await signIn.ensureAccount();
      const setup = (await invitations.renewSetup(accountId))!;
      const { token } = await signIn.join(setup, email, password, visitor);
      const principal = (await sessions.find(token, visitor.address))!;

      const code = 'invalid_credentials';
      await assert.rejects(signIn.login(email, password, visitor), { code });
      const current = `new password ${resets}`;
      const change = signIn.changePassword(principal, current, 'a password of the thief');
      await assert.rejects(change, { message: 'The current password is wrong.' });
      const open = await db.selectFrom('sessions').select('id').execute();
      assert.equal(open.length, 1);
    });

    test('failed attempts at one address lock out no other address', async () => {
      const server = await start();
      for (let n = 0; n < 30; n++) await login(server, { from: '203.0.113.9', secret: 'a guess' });
      assert.equal((await login(server, { from: '198.51.100.1' })).status, 200);
    });

    test('an IPv6 network counts as one address', async () => {
      const server = await start();
      const statuses: number[] = [];
      for (const end of ['1', '2:3', 'ffff']) {
        const from = `2001:db8:1:2::${end}`;
        statuses.push((await login(server, { from, secret: 'a guess' })).status);
      }
      assert.deepEqual(statuses, [401, 401, 429]);
    });

    test('a user has at most twenty devices, of which the oldest is forgotten', async () => {
      const { db } = await openTestUsage(database);
      const user = { id: 'a', email, password_hash: '', created_at: 0 };
      await db.insertInto('users').values(user).execute();
      const devices = createDevices(db, clock);
      const tokens: string[] = [];
      for (let n = 0; n < 21; n++) {
        clock.turn(1);
        const token = await db.transaction().execute((tx) => devices.remember(tx, 'a', undefined));
        tokens.push(token);
      }
      const known = await Promise.all(tokens.map((token) => devices.isKnown(token, email)));
      assert.deepEqual(known, [false, ...Array(20).fill(true)]);
    });
  });
}

test('the network of an address is its /64, or the IPv4 address', () => {
  const networks = [
    ['203.0.113.7', '203.0.113.7'],
    ['::ffff:203.0.113.7', '::ffff:203.0.113.7'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2'],
    ['2001:db8::1', '2001:db8:0:0'],
    ['::1', '0:0:0:0'],
    ['fe80::1%eth0', 'fe80:0:0:0'],
    ['unknown', 'unknown'],
  ];
  for (const [address, network] of networks) assert.equal(toNetwork(address as string), network);
});
