// millrace team reset, beside a running server and without one.

import assert from 'node:assert';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { createHandClock } from '#test/support/clock.ts';
import { databases } from '#test/support/databases.ts';
import { callMillrace, makeFolder, runMillrace } from '#test/support/process.ts';
import { cookieOf, password, startTestServer, type TestServer } from '#test/support/server.ts';

const api = '/dashboard/api';
const email = 'owner@example.com';
const next = 'a new and better one';

function reset({ dataDir, databaseUrl }: TestServer, ...words: string[]) {
  // Else it reads that of the current folder.
  const config = join(makeFolder(), 'millrace.yaml');
  writeFileSync(config, `data_dir: ${dataDir}\n`);
  return callMillrace([
    'users',
    'reset',
    ...(words.length === 0 ? [email] : words),
    '--config',
    config,
    ...(databaseUrl === null ? [] : ['--database-url', databaseUrl]),
  ]);
}

const tokenOf = ({ stdout }: { stdout: string }) => stdout.trim().split('/').at(-1) as string;
const look = (server: TestServer, token: string) =>
  server.fetch(`${api}/password-resets/look`, { json: { token } });
const use = (server: TestServer, token: string) =>
  server.fetch(`${api}/password-resets`, { json: { token, password: next } });
const login = (server: TestServer, secret: string) =>
  server.fetch(`${api}/login`, { json: { email, password: secret } });

for (const database of databases) {
  describe(`team reset on ${database}`, () => {
    test('the link sets a password once, signs in, and ends the other sessions', async () => {
      const server = await startTestServer({ database });
      const before = await server.join();
      const made = await reset(server, 'Owner@Example.com', '--url', 'https://models.example.com/');
      assert.equal(made.code, 0, made.stderr);
      assert.match(made.stdout, /^https:\/\/models\.example\.com\/#\/reset\/[A-Za-z0-9]{43}\n$/);
      const token = tokenOf(made);
      assert.deepEqual(await (await look(server, token)).json(), { email });
      assert.equal((await before(`${api}/me`)).status, 200, 'nothing has changed yet');
      const short = { token, password: 'short' };
      const refused = await server.fetch(`${api}/password-resets`, { json: short });
      assert.equal(refused.status, 400);

      const used = await use(server, token);
      assert.equal(used.status, 200);
      const after = server.withCookie(cookieOf(used));
      assert.equal((await after(`${api}/me`)).status, 200);
      assert.equal((await before(`${api}/me`)).status, 401);
      assert.deepEqual(
        [(await look(server, token)).status, (await use(server, token)).status],
        [404, 404],
      );
      assert.equal((await login(server, password)).status, 401);
      assert.equal((await login(server, next)).status, 200);

      const log = await (await after(`${api}/audit-events`)).json();
      const actions = (log as { data: { action: string; address: string }[] }).data
        .filter(({ action }) => action.startsWith('user.password_reset'))
        .map(({ action, address }) => [action, address === 'server']);
      assert.deepEqual(actions, [
        ['user.password_reset', false],
        ['user.password_reset_created', true],
      ]);
    });

    test('it works while the server is stopped, and a second link voids the first', async () => {
      const stopped = await startTestServer({ database });
      await stopped.join();
      await stopped.stop();
      const links = [await reset(stopped), await reset(stopped)];
      assert.match(links[0]?.stdout ?? '', /^http:\/\/127\.0\.0\.1:8080\/#\/reset\/\S+\n$/);
      const server = await startTestServer({ on: stopped });
      const statuses: number[] = [];
      for (const link of links) statuses.push((await use(server, tokenOf(link))).status);
      assert.deepEqual(statuses, [404, 200]);
    });

    test('a link expires after an hour, and of two uses at once one wins', async () => {
      const clock = createHandClock(Date.now());
      const server = await startTestServer({ database, clock });
      await server.join();
      const late = tokenOf(await reset(server));
      clock.turn(3_600_000 + 60_000);
      assert.equal((await use(server, late)).status, 404);
      clock.turn(-3_600_000 - 60_000);
      const twice = await Promise.all([use(server, late), use(server, late)]);
      assert.deepEqual(twice.map(({ status }) => status).sort(), [200, 404]);
    });

    test('a changed password voids an earlier link and ends the other sessions', async () => {
      const server = await startTestServer({ database });
      const other = await server.join();
      const session = server.withCookie(cookieOf(await login(server, password)));
      const made = await reset(server);
      assert.match(made.stderr, /from the settings server\.host and server\.port .* use --url\./);
      const token = tokenOf(made);
      const json = { current_password: password, new_password: next };
      assert.equal((await session(`${api}/password`, { json })).status, 200);
      assert.equal((await look(server, token)).status, 404);
      assert.equal((await use(server, token)).status, 404);
      assert.equal((await other(`${api}/me`)).status, 401);
      assert.equal((await session(`${api}/me`)).status, 200);
    });

    test('an unknown address is an error, and a removed member takes the link along', async () => {
      const server = await startTestServer({ database });
      const owner = await server.join();
      const unknown = await reset(server, 'nobody@example.com');
      assert.deepEqual([unknown.code, unknown.stdout], [1, '']);
      assert.match(unknown.stderr, /^No user has the email address nobody@example\.com\. /);
      const invited = await owner(`${api}/invitations`, { json: { role: 'owner' } });
      const { link } = (await invited.json()) as { link: string };
      const member = await server.joinBy(link, 'leaving@example.com');
      const { id } = (await (await member(`${api}/me`)).json()) as { id: string };
      const made = await reset(server, 'leaving@example.com');
      assert.equal((await owner(`${api}/members/${id}`, { method: 'DELETE' })).status, 200);
      assert.equal((await use(server, tokenOf(made))).status, 404);
    });
  });
}

test('people are listed, and removed with their keys unless these are kept', async () => {
  const server = await startTestServer();
  const owner = await server.join();
  const env = { HOME: makeFolder(), MILLRACE_URL: server.url };
  const run = (...words: string[]) => callMillrace(words, { env });
  await callMillrace(['login'], { env, input: `${email}\n${password}\n` });
  for (const name of ['ann', 'bob']) {
    const invited = await owner(`${api}/invitations`, { json: { role: 'member' } });
    const { link } = (await invited.json()) as { link: string };
    const member = await server.joinBy(link, `${name}@example.com`);
    await member(`${api}/api-keys`, { json: { label: `of ${name}` } });
  }
  assert.match((await run('users', 'list')).stdout, / {2}bob@example\.com +member +\S+ +1\n/);
  assert.equal((await run('users', 'list', '--limit', '1')).stdout.split('\n').length, 3);
  assert.match((await run('keys', 'list')).stdout, / {2}of ann .* ann@example\.com {2}/);
  assert.equal((await run('keys', 'list', '--limit', '2')).stdout.split('\n').length, 4);

  const asked = await run('users', 'remove', 'ann@example.com');
  assert.match(
    asked.stderr,
    /^Remove ann@example\.com and revoke the 1 API key that they created\?/,
  );
  const removed = await run('users', 'remove', 'Ann@example.com', '--yes');
  assert.equal(removed.stdout, 'Removed ann@example.com. API keys revoked: 1.\n', removed.stderr);
  const kept = await run('users', 'remove', 'bob@example.com', '--keep-keys', '--yes');
  assert.equal(kept.stdout, 'Removed bob@example.com. API keys revoked: 0.\n');
  const keys = (await run('keys', 'list')).stdout;
  assert.deepEqual(
    [keys.includes('of ann'), / of bob .* owner@example\.com {2}/.test(keys)],
    [false, true],
  );
  assert.equal((await run('users', 'remove', 'ann@example.com', '--yes')).code, 1);
});

test('the CLI is a known device after its first sign-in, also after it has signed out', async () => {
  const server = await startTestServer({ config: { accounts: { login_attempts: 1 } } });
  await server.join();
  const env = { HOME: makeFolder(), MILLRACE_URL: server.url };
  const signIn = () => callMillrace(['login'], { env, input: `${email}\n${password}\n` });
  assert.equal((await signIn()).code, 0);
  assert.equal((await callMillrace(['logout'], { env })).code, 0);
  for (let n = 0; n < 3; n++) await login(server, 'a guess');
  assert.equal((await login(server, password)).status, 429);
  const again = await signIn();
  assert.equal(again.code, 0, again.stderr);
});

test('a folder without a database is an error and stays empty', async () => {
  const dataDir = makeFolder();
  const { code, stderr } = await runMillrace(['users', 'reset', email, '--data-dir', dataDir]);
  assert.equal(code, 1);
  assert.match(stderr, /^There is no database in /);
});
