// The CLI as people use it: a real server, real commands, exit codes and what they print.

import assert from 'node:assert';
import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import {
  makeFolder,
  type RunningProcess,
  runMillrace,
  serveMillrace,
} from '#test/support/process.ts';

describe('the CLI', () => {
  let server: RunningProcess;
  let env: Record<string, string>;
  before(async () => {
    server = await serveMillrace();
    env = { HOME: makeFolder(), MILLRACE_URL: server.url };
  });

  test('help says what there is, and an unknown command exits 2', async () => {
    const help = await runMillrace(['--help']);
    assert.equal(help.code, 0);
    for (const word of ['serve', 'config', 'login', 'keys', 'ssh-keys', 'models']) {
      assert(help.stdout.includes(word));
    }
    assert.equal((await runMillrace(['fly'])).code, 2);
  });

  test('without a sign-in it says how to sign in', async () => {
    const { code, stderr } = await runMillrace(['keys', 'list'], { env });
    assert.deepEqual([code, stderr], [1, 'Not signed in. Run `millrace login`.\n']);
  });

  test('the set-up link signs in, keys are made, listed, used and revoked', async () => {
    const link = /(http\S+#\/join\/\S+)/.exec(server.stdout())?.[1] ?? '';
    const joined = await runMillrace(['login', '--link', link, '--email', 'me@example.com'], {
      env,
      input: 'a long enough password\n',
    });
    assert.equal(joined.code, 0, joined.stderr);
    const file = join(env.HOME as string, '.config', 'millrace', 'session.json');
    assert.equal(statSync(file).mode & 0o777, 0o600);
    const who = await runMillrace(['whoami'], { env });
    assert.equal(who.stdout, `me@example.com (owner) on ${server.url}\n`);

    const made = await runMillrace(
      ['keys', 'create', 'ci', '--scope', 'inference', '--expires', '30d', '--concurrent', '2'],
      { env },
    );
    const key = made.stdout.trim();
    assert.match(key, /^secret_ci_[0-9a-f]{32}\.[A-Za-z0-9]{32}$/);
    const models = await runMillrace(['models', 'list'], {
      env: { ...env, MILLRACE_API_KEY: key },
    });
    assert(models.stdout.includes('hermes3-405b'));

    const limit = (...options: string[]) =>
      runMillrace(['keys', 'limit', 'ci', ...options], { env });
    const limited = await limit(
      '--requests-per-minute',
      '60',
      '--concurrent',
      '4',
      '--budget',
      '2.5',
    );
    assert.equal(limited.stdout, 'ci: 60 rpm, 4 at once, $2.5 a month\n');
    const freed = await limit('--concurrent', 'none', '--tokens-per-minute', '9000');
    assert.equal(freed.stdout, 'ci: 60 rpm, 9000 tpm, $2.5 a month\n');
    assert.deepEqual([(await limit()).code, (await limit('--budget', '0')).code], [2, 2]);
    const table = await runMillrace(['keys', 'list'], { env });
    assert.match(table.stdout, /^\S+ +ci .* 60 rpm, 9000 tpm, \$2\.5 a month +\$0\.0000$/m);

    const account = (...options: string[]) => runMillrace(['limits', ...options], { env });
    const bounded = await account('set', '--concurrent', '50', '--budget', '100');
    assert.match(
      bounded.stdout,
      /^limits: 50 at once, \$100 a month\n\d{4}-\d\d: \$0\.0000 for 0 /,
    );
    assert.equal((await account('show')).stdout, bounded.stdout);
    assert.equal((await account('set')).code, 2);

    const list = await runMillrace(['keys', 'list', '--json'], { env });
    const { id } = (JSON.parse(list.stdout) as { id: string; label: string }[]).find(
      ({ label }) => label === 'ci',
    ) as { id: string };
    assert.equal((await runMillrace(['keys', 'revoke', id], { env })).code, 0);
    const refused = await runMillrace(['models', 'list'], {
      env: { ...env, MILLRACE_API_KEY: key },
    });
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /wrong, revoked or expired/);
  });

  test('e-mail and password can come from a pipe, in one piece', async () => {
    const signedIn = await runMillrace(['login'], {
      env,
      input: 'me@example.com\na long enough password\n',
    });
    assert.deepEqual([signedIn.code, signedIn.stderr], [0, '']);
    assert.equal(signedIn.stdout, `Signed in to ${server.url} as me@example.com.\n`);
  });

  test('input that ends before an answer is an error with a sentence', async () => {
    for (const [args, question] of [
      [['login'], 'E-mail:'],
      [['login', '--email', 'me@example.com'], 'Password:'],
    ] as const) {
      const { code, stderr } = await runMillrace([...args], { env });
      assert.deepEqual([code, stderr], [1, `The input ended before an answer to "${question}".\n`]);
    }
  });

  test('ssh keys are generated into a file only the owner can read, and deleted', async () => {
    const cwd = makeFolder();
    const key = /First API key\s+(\S+)/.exec(server.stdout())?.[1] ?? '';
    const withKey = { ...env, MILLRACE_API_KEY: key };
    const config = { env: withKey, cwd };
    const made = await runMillrace(['ssh-keys', 'generate', 'laptop'], config);
    assert.equal(made.code, 0, made.stderr);
    assert.equal(statSync(join(cwd, 'laptop.pem')).mode & 0o777, 0o400);
    const twice = await runMillrace(['ssh-keys', 'generate', 'laptop'], config);
    assert.deepEqual([twice.code, twice.stderr], [1, 'laptop.pem exists already.\n']);
    // The name that the dashboard gives it.
    const odd = await runMillrace(['ssh-keys', 'generate', 'my / laptop'], config);
    assert.deepEqual([odd.code, odd.stdout], [0, 'Saved the private key as my-laptop.pem.\n']);
    assert.ok(existsSync(join(cwd, 'my-laptop.pem')));
  });

  test('a server that is not there is named', async () => {
    const lost = await runMillrace(['models', 'list'], {
      env: { MILLRACE_URL: 'http://127.0.0.1:9', MILLRACE_API_KEY: 'x' },
    });
    assert.equal(lost.code, 1);
    assert.match(lost.stderr, /^http:\/\/127\.0\.0\.1:9 does not answer/);
  });

  test('config check says what is wrong without starting', async () => {
    const fine = await runMillrace(['config', 'check']);
    assert.deepEqual([fine.code, fine.stdout], [0, 'No file: the defaults are used.\n']);
    const bad = await runMillrace(['config', 'check'], { env: { MILLRACE_PORT: 'x' } });
    assert.deepEqual(
      [bad.code, bad.stderr],
      [1, 'MILLRACE_PORT: server.port is "x", but must be integer.\n'],
    );
  });
});
