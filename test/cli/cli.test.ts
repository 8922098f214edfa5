// The CLI as people use it: a real server, real commands, their exit codes and their output.

import assert from 'node:assert';
import { globSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { callMillrace, makeFolder, runMillrace } from '#test/support/process.ts';
import { startTestServer, type TestServer } from '#test/support/server.ts';

const root = join(import.meta.dirname, '../..');

describe('the CLI', () => {
  let server: TestServer;
  let env: Record<string, string>;
  before(async () => {
    server = await startTestServer();
    env = { HOME: makeFolder(), MILLRACE_URL: server.url };
  });

  test('help lists the commands, and an unknown command exits 2', async () => {
    const help = await runMillrace(['--help']);
    assert.equal(help.code, 0);
    for (const word of ['serve', 'config', 'login', 'keys', 'ssh-keys', 'models']) {
      assert(help.stdout.includes(word));
    }
    assert.deepEqual(
      help.stdout.match(/^ {2}[a-z-]+( \S+)* {2,}[a-z].*$/gm),
      null,
      'every description begins with a capital letter',
    );
    assert.equal((await runMillrace(['fly'])).code, 2);
  });

  test('a command that needs a session says how to sign in', async () => {
    const { code, stderr } = await callMillrace(['keys', 'list'], { env });
    assert.deepEqual([code, stderr], [1, 'Not signed in. Run `./millrace login`.\n']);
  });

  test('hints name the program as it was started', async () => {
    const hintOf = async (path: string) => {
      const unnamed = { HOME: makeFolder(), MILLRACE_PROGRAM: '', PATH: path };
      return (await runMillrace(['keys', 'list'], { env: unnamed })).stderr;
    };
    const path = process.env.PATH ?? '';
    assert.equal(await hintOf(path), `Not signed in. Run \`${root}/millrace login\`.\n`);
    assert.equal(await hintOf(`${root}:${path}`), 'Not signed in. Run `millrace login`.\n');
  });

  test('the set-up link signs in; keys are created, listed, limited, used and revoked', async () => {
    const link = server.setupLink ?? '';
    const joined = await callMillrace(['login', '--link', link, '--email', 'me@example.com'], {
      env,
      input: 'a long enough password\n',
    });
    assert.equal(joined.code, 0, joined.stderr);
    const file = join(env.HOME as string, '.config', 'millrace', 'session.json');
    assert.equal(statSync(file).mode & 0o777, 0o600);
    const who = await callMillrace(['whoami'], { env });
    assert.equal(who.stdout, `me@example.com (owner) on ${server.url}\n`);
    const elsewhere = { ...env, HOME: makeFolder() };
    const folder = join(elsewhere.HOME, '.config', 'millrace');
    mkdirSync(folder, { recursive: true });
    const saved = JSON.parse(readFileSync(file, 'utf8')) as { session: string };
    writeFileSync(join(folder, 'session.json'), JSON.stringify({ ...saved, session: 'ended' }));
    const ended = await callMillrace(['whoami'], { env: elsewhere });
    assert.equal(ended.stderr, 'Your session has ended. Run `./millrace login`.\n');

    const again = await callMillrace(['login', '--link', link, '--email', 'you@example.com'], {
      env,
    });
    assert.equal(again.code, 1);
    assert.equal(again.stderr, 'This link was used or has expired. Ask for a new one.\n');

    const made = await callMillrace(
      ['keys', 'create', 'ci', '--scope', 'inference', '--expires', '30d', '--concurrent', '2'],
      { env },
    );
    const key = made.stdout.trim();
    assert.match(key, /^secret_ci_[0-9a-f]{32}\.[A-Za-z0-9]{32}$/);
    const models = await callMillrace(['models', 'list'], {
      env: { ...env, MILLRACE_API_KEY: key },
    });
    assert(models.stdout.includes('hermes3-405b'));

    for (const [option, word, text] of [
      ['--scope', 'all', /Allowed choices are inference, cloud\./],
      ['--expires', '2020-01-01', /Give a time in the future, such as 90d\./],
    ] as const) {
      const refused = await callMillrace(['keys', 'create', 'odd', option, word], { env });
      assert.equal(refused.code, 2);
      assert.match(refused.stderr, text);
    }

    const limit = (...options: string[]) =>
      callMillrace(['keys', 'limit', 'ci', ...options], { env });
    const limited = await limit(
      '--requests-per-minute',
      '60',
      '--concurrent',
      '4',
      '--budget',
      '2.5',
    );
    assert.equal(limited.stdout, 'ci: 60 rpm, 4 at once, $2.50 a month\n');
    const freed = await limit('--concurrent', 'none', '--tokens-per-minute', '9000');
    assert.equal(freed.stdout, 'ci: 60 rpm, 9000 tpm, $2.50 a month\n');
    assert.deepEqual([(await limit()).code, (await limit('--budget', '0')).code], [2, 2]);
    const table = await callMillrace(['keys', 'list'], { env });
    assert.match(table.stdout, /^\S+ +ci .* 60 rpm, 9000 tpm, \$2\.50 a month +\$0\.00$/m);

    const account = (...options: string[]) => callMillrace(['limits', ...options], { env });
    const bounded = await account('set', '--concurrent', '50', '--budget', '100');
    assert.match(
      bounded.stdout,
      /^Limits: 50 at once, \$100\.00 a month\n\d{4}-\d\d \$0\.00: \$0\.00 for models, \$0\.00 for machines\n0 requests/,
    );
    assert.equal((await account('show')).stdout, bounded.stdout);
    assert.equal((await account('set')).code, 2);

    const list = await callMillrace(['keys', 'list', '--json'], { env });
    const { id } = (JSON.parse(list.stdout) as { id: string; label: string }[]).find(
      ({ label }) => label === 'ci',
    ) as { id: string };
    const unconfirmed = await callMillrace(['keys', 'revoke', id], { env, input: 'y\n' });
    assert.deepEqual(
      [unconfirmed.code, unconfirmed.stderr],
      [
        1,
        `Revoke API key ci (${id})? Its requests end at once; batches and background responses end. Standard input is not a terminal, so this needs --yes. Nothing was changed.\n`,
      ],
    );
    const unknown = await callMillrace(['keys', 'revoke', 'cd', '--yes'], { env });
    assert.match(unknown.stderr, /^There is no API key cd\. /);
    const revoked = await callMillrace(['keys', 'revoke', 'ci', '--yes'], { env });
    assert.equal(revoked.stdout, 'Revoked API key ci.\n', revoked.stderr);
    const refused = await callMillrace(['models', 'list'], {
      env: { ...env, MILLRACE_API_KEY: key },
    });
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /wrong, revoked or expired/);
  });

  test('email and password can come from a pipe, in one piece', async () => {
    const signedIn = await callMillrace(['login'], {
      env,
      input: 'me@example.com\na long enough password\n',
    });
    assert.deepEqual([signedIn.code, signedIn.stderr], [0, '']);
    assert.equal(signedIn.stdout, `Signed in to ${server.url} as me@example.com.\n`);
  });

  test('input that ends before an answer is an error', async () => {
    for (const [args, question] of [
      [['login'], 'Email'],
      [['login', '--email', 'me@example.com'], 'Password'],
    ] as const) {
      const { code, stderr } = await callMillrace([...args], { env });
      assert.deepEqual(
        [code, stderr],
        [1, `Standard input ended before the answer to "${question}".\n`],
      );
    }
  });

  test('a generated private key is saved to ~/.ssh, for its owner only, and never overwritten', async () => {
    const cwd = makeFolder();
    const folder = join(env.HOME as string, '.ssh');
    const { key } = server;
    const withKey = { env: { ...env, MILLRACE_API_KEY: key }, cwd };
    const generate = (...words: string[]) =>
      runMillrace(['ssh-keys', 'generate', ...words], withKey);
    const modeOf = (path: string) => statSync(path).mode & 0o777;

    const made = await generate('laptop');
    const file = join(folder, 'laptop.pem');
    assert.equal(made.stdout, `Saved the private key to ${file}.\n`, made.stderr);
    assert.deepEqual([modeOf(folder), modeOf(file)], [0o700, 0o600]);
    assert.match(readFileSync(file, 'utf8'), /^-----BEGIN .*PRIVATE KEY-----/);
    assert.deepEqual(readdirSync(cwd), []);

    const twice = await generate('laptop');
    assert.deepEqual(
      [twice.code, twice.stderr],
      [1, `${file} already exists. Choose another name, or another file with --out.\n`],
    );
    // The same file name as the dashboard's download.
    const odd = await generate('my / laptop');
    assert.equal(odd.stdout, `Saved the private key to ${join(folder, 'my-laptop.pem')}.\n`);
    assert.equal((await generate('desk', '--out', 'desk.pem')).code, 0);
    assert.equal(modeOf(join(cwd, 'desk.pem')), 0o600);
  });

  test('an SSH key is deleted by name or id, with --yes without a terminal', async () => {
    const { key } = server;
    const run = (...words: string[]) =>
      callMillrace(['ssh-keys', ...words], {
        env: { ...env, MILLRACE_API_KEY: key },
        input: 'y\n',
      });
    assert.equal((await run('generate', 'old')).code, 0);
    const refused = await run('delete', 'old');
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /^Delete SSH key old \(\w+\)\? .* needs --yes\./);
    assert.match((await run('list')).stdout, / old /);
    const deleted = await run('delete', 'old', '--yes');
    assert.equal(deleted.stdout, 'Deleted SSH key old. Instances that have it keep it.\n');
    assert.match((await run('delete', 'old', '--yes')).stderr, /^There is no SSH key old\./);
  });

  test('a server that does not respond is named', async () => {
    const lost = await callMillrace(['models', 'list'], {
      env: { MILLRACE_URL: 'http://127.0.0.1:9', MILLRACE_API_KEY: 'x' },
    });
    assert.equal(lost.code, 1);
    assert.match(lost.stderr, /^Can't reach the server at http:\/\/127\.0\.0\.1:9 \(/);
    const mistyped = await callMillrace(['models', 'list'], { env: { MILLRACE_URL: 'localhost' } });
    assert.equal(mistyped.code, 2);
    assert.match(mistyped.stderr, /^MILLRACE_URL is localhost\. Set it to a URL such as http:/);
  });

  test('config check reports problems without starting the server', async () => {
    const fine = await runMillrace(['config', 'check']);
    assert.deepEqual(
      [fine.code, fine.stdout],
      [0, 'No configuration file found. The defaults and the environment are valid.\n'],
    );
    const bad = await runMillrace(['config', 'check'], { env: { MILLRACE_PORT: 'x' } });
    assert.deepEqual(
      [bad.code, bad.stderr],
      [1, 'MILLRACE_PORT: server.port must be an integer, got "x".\n'],
    );
    const file = join(makeFolder(), 'mine.yaml');
    writeFileSync(file, 'server:\n  port: 8081\n');
    const prose = join(makeFolder(), 'prose.yaml');
    writeFileSync(prose, `server:\n${'  a: b: c\n'.repeat(9)}${'word '.repeat(99)}\n`);
    const { stderr } = await runMillrace(['config', 'check', prose]);
    const lines = stderr.trimEnd().split('\n');
    assert.ok(lines.length <= 5, `the first problems are enough: ${stderr}`);
    assert.ok(lines.every((line) => line.length < prose.length + 220));
    for (const words of [[file], ['--config', file]]) {
      assert.equal(
        (await runMillrace(['config', 'check', ...words])).stdout,
        `${file} is valid.\n`,
      );
    }
  });

  test('gpu build on a computer without a GPU says so before it asks for compilers', async () => {
    const folder = makeFolder();
    writeFileSync(join(folder, 'nvidia-smi'), '#!/bin/sh\nexit 9\n', { mode: 0o755 });
    const { code, stderr } = await callMillrace(['gpu', 'build'], {
      env: { PATH: `${folder}:${process.env.PATH}` },
    });
    assert.equal(code, 1);
    assert.match(stderr, /^No NVIDIA GPU was found\. /);
  });

  test('the prompts are loaded only when a command needs them, so never by serve', () => {
    const wrong = globSync('src/**/*.ts', { cwd: root }).filter((file) =>
      /^(import|export) .*'@clack\//m.test(readFileSync(join(root, file), 'utf8')),
    );
    assert.deepEqual(wrong, []);
  });
});
