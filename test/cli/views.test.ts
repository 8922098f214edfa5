// What all commands have in common: --json, --watch, and ids that may be shortened.

import assert from 'node:assert';
import { before, describe, test } from 'node:test';
import type { Command } from 'commander';
import { findOnly } from '#cli/find.ts';
import { createProgram } from '#cli/program.ts';
import { callMillrace, makeFolder } from '#test/support/process.ts';
import { startTestServer, type TestServer } from '#test/support/server.ts';
import { ctrlC, typeMillrace } from '#test/support/terminal.ts';

interface Leaf {
  readonly path: string;
  readonly command: Command;
}

const listLeaves = (command: Command, path: readonly string[] = []): Leaf[] =>
  command.commands.length === 0
    ? [{ path: path.join(' '), command }]
    : command.commands.flatMap((child) => listLeaves(child, [...path, child.name()]));

/** They start a program or a conversation, or print a file in a format of its own. */
const withoutData = [
  'serve',
  'config example',
  'config schema',
  'instances ssh',
  'chat',
  'batches results',
  'completion',
];

const program = await createProgram();
const leaves = listLeaves(program);
const has = ({ command }: Leaf, long: string) => command.options.some((one) => one.long === long);

describe('every command', () => {
  test('has no option that the program has, which would take its value', () => {
    const names = program.options.map(({ long }) => long ?? '');
    assert.ok(names.includes('--context'));
    const taken = leaves.filter((leaf) => names.some((name) => has(leaf, name)));
    assert.deepEqual(
      taken.map(({ path }) => path),
      [],
    );
  });

  test('has --json if it prints data', () => {
    const lacking = leaves.filter((leaf) => !has(leaf, '--json')).map(({ path }) => path);
    assert.deepEqual(lacking, withoutData);
  });

  test('has --watch if it lists or shows something', () => {
    const views = leaves.filter(({ path }) =>
      /(^| )(list|show|status|types|usage|audit)$/.test(path),
    );
    assert(views.length >= 15, String(views.length));
    const lacking = views.filter((leaf) => !has(leaf, '--watch')).map(({ path }) => path);
    assert.deepEqual(lacking, []);
  });
});

describe('commands on a server', () => {
  let server: TestServer;
  let env: Record<string, string>;
  const run = (...args: string[]) => callMillrace(args, { env });
  const json = async (...args: string[]) => {
    const { code, stdout, stderr } = await run(...args, '--json');
    assert.equal(code, 0, `${args.join(' ')}: ${stderr}`);
    return JSON.parse(stdout);
  };

  before(async () => {
    server = await startTestServer();
    env = { HOME: makeFolder(), MILLRACE_URL: server.url, PATH: process.env.PATH ?? '' };
    const link = server.setupLink ?? '';
    const login = ['login', '--link', link, '--email', 'me@example.com'];
    const joined = await callMillrace(login, { env, input: 'a long enough password\n' });
    assert.equal(joined.code, 0, joined.stderr);
  });

  test('print JSON that parses, whatever they list', async () => {
    const views = leaves.filter(({ path }) =>
      / (list|types)$|^(status|usage|audit|whoami)$/.test(path),
    );
    for (const { path } of views) await json(...path.split(' '));
  });

  test('accept the first characters of an id, and refuse what is ambiguous', async () => {
    await run('keys', 'create', 'twin');
    await run('keys', 'create', 'twin');
    const keys: { id: string; label: string }[] = await json('keys', 'list');
    const twins = keys.filter(({ label }) => label === 'twin');
    const refused = await run('keys', 'revoke', 'twin', '--yes');
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /^twin matches more than one API key\. Give the id: /);
    for (const { id } of twins) assert(refused.stderr.includes(`${id} (twin)`), refused.stderr);
    const id = twins[0]?.id ?? '';
    const revoked = await json('keys', 'revoke', id.slice(0, 12), '--yes');
    assert.deepEqual(revoked, { id, label: 'twin' });

    const [me] = await json('team', 'list');
    const events = await json('audit', '--user', me.id.slice(0, 8));
    assert.equal(events[0].user_email, 'me@example.com');
    await run('ssh-keys', 'generate', 'laptop');
    const [key] = await json('ssh-keys', 'list');
    const deleted = await json('ssh-keys', 'delete', key.id.slice(0, 8), '--yes');
    assert.equal(deleted.name, 'laptop');
  });

  test('--watch redraws in place, shows what changed, and ends at Ctrl-C', async () => {
    const { code, raw, screen } = await typeMillrace(
      env,
      ['keys', 'list', '--watch', '--interval', '1'],
      ['LABEL', () => run('keys', 'create', 'watched')],
      ['watched', ctrlC],
    );
    assert.equal(code, 130, screen);
    assert(raw.includes('\u001b[H'), raw);
  });

  test('--watch --json prints one line each time', async () => {
    const { code, screen } = await typeMillrace(
      env,
      ['whoami', '--watch', '--json', '--interval', '1'],
      ['"role":"owner"', ''],
      ['"role":"owner"', ctrlC],
    );
    assert.equal(code, 130);
    const [first = ''] = screen.split('\r\n');
    assert.equal(JSON.parse(first).url, server.url);
    assert.equal((await run('whoami', '--watch', '--interval', '0')).code, 2);
  });
});

describe('finding by name', () => {
  const kind = {
    noun: 'thing',
    command: 'millrace things list',
    namesOf: ({ name }: { name: string }) => [name],
  };
  const things = [
    { id: 'aaaa1111', name: 'one' },
    { id: 'aaaa2222', name: 'aaaa1' },
    { id: 'bbbb3333', name: 'aaaa1111' },
  ];

  test('an id wins over a name, and a name over a prefix', () => {
    assert.equal(findOnly(things, 'aaaa1111', kind).name, 'one');
    assert.equal(findOnly(things, 'aaaa1', kind).id, 'aaaa2222');
    assert.equal(findOnly(things, 'bbbb', kind).id, 'bbbb3333');
  });

  test('a prefix of three characters is too short, and a typo gets a hint', () => {
    assert.throws(() => findOnly(things, 'bbb', kind), /There is no thing bbb\. See/);
    assert.throws(() => findOnly(things, 'bbbb3334', kind), /Did you mean bbbb3333\?/);
    assert.throws(
      () => findOnly(things, 'aaaa', kind),
      /aaaa matches more than one thing\. Give the id: aaaa1111 \(one\), aaaa2222 \(aaaa1\)\./,
    );
  });
});
