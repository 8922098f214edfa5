// millrace team, audit and firewall against a real server, and how tables fit a terminal.

import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { renderTable, wrapText } from '#cli/output.ts';
import { callMillrace, makeFolder } from '#test/support/process.ts';
import { startTestServer } from '#test/support/server.ts';
import { actionNames } from '../../web/src/audit-log/action-names.ts';

describe('team, audit and firewall', () => {
  let env: Record<string, string>;
  const run = (...args: string[]) => callMillrace(args, { env });

  before(async () => {
    const { url, setupLink } = await startTestServer();
    env = { HOME: makeFolder(), MILLRACE_URL: url };
    await join(setupLink ?? '', 'owner@example.com', env);
  });

  async function join(link: string, email: string, environment: Record<string, string>) {
    const login = ['login', '--link', link.trim(), '--email', email];
    const input = 'a long enough password\n';
    const joined = await callMillrace(login, { env: environment, input });
    assert.equal(joined.code, 0, joined.stderr);
  }

  test('an invited person joins with the role, gets another one and is removed', async () => {
    const { stdout: link } = await run('team', 'invite', 'viewer');
    await join(link, 'ada@example.com', { ...env, HOME: makeFolder() });
    assert.match((await run('team', 'list')).stdout, /ada@example\.com +viewer/);
    const changed = await run('team', 'role', 'ada@example.com', 'member');
    assert.equal(changed.stdout, 'ada@example.com is now member.\n', changed.stderr);
    assert.match((await run('users', 'list')).stdout, /ada@example\.com +member/);
    assert.equal((await run('team', 'remove', 'ada@example.com', '--yes')).code, 0);
    const { code, stderr } = await run('team', 'role', 'ada@example.com', 'owner');
    assert.equal(code, 1);
    assert.match(stderr, /See `\S*\/millrace team list`\./);
  });

  test('a viewer leaves, and is told so; the last owner stays', async () => {
    const { stdout: link } = await run('team', 'invite', 'viewer');
    const own = { ...env, HOME: makeFolder() };
    await join(link, 'eve@example.com', own);
    const leave = ['team', 'remove', 'eve@example.com'];
    const asked = await callMillrace(leave, { env: own });
    assert.match(asked.stderr, /^Leave the account as eve@example\.com, sign out and revoke/);
    const left = await callMillrace([...leave, '--yes'], { env: own });
    assert.equal(left.stdout, 'You have left the account. API keys revoked: 0.\n', left.stderr);
    assert.match((await callMillrace(['whoami'], { env: own })).stderr, /not signed in/i);
    const last = await run('team', 'remove', 'owner@example.com', '--yes');
    assert.equal(last.code, 1);
    assert.match((await run('whoami')).stdout, /owner@example\.com \(owner\)/);
  });

  test('the audit log is filtered by person and action', async () => {
    const all = await run('audit', '--user', 'owner@example.com', '--from', '1d', '--json');
    const events = JSON.parse(all.stdout) as { action: string; user_email: string }[];
    assert.ok(events.length > 0);
    assert.ok(events.every(({ user_email }) => user_email === 'owner@example.com'));
    const action = events[0]?.action as string;
    const { stdout } = await run('audit', '--action', action, '--limit', '1');
    const [header, line, rest] = stdout.trimEnd().split('\n');
    assert.match(header ?? '', /^TIME +ACTION +BY +RESOURCE +ADDRESS$/);
    assert.ok(line?.includes(action));
    assert.equal(rest, undefined);
    const { stdout: help } = await run('audit', '--help');
    const example = /such as (\S+)/.exec(help)?.[1] ?? '';
    assert.ok(example in actionNames, `${example} is an action`);
  });

  test('firewall rules are added and removed by their number', async () => {
    const before = JSON.parse((await run('firewall', 'list', '--json')).stdout) as unknown[];
    const words = ['--from', '203.0.113.0/24', '--description', 'API'];
    const added = await run('firewall', 'allow', 'tcp', '8000-8100', ...words);
    assert.match(added.stdout, /tcp +8000-8100 +203\.0\.113\.0\/24 +API/, added.stderr);
    const odd = await run('firewall', 'allow', 'tcp', '80', '--from', 'nonsense');
    const text = 'Source network is not a valid IPv4 network. Use one such as 203.0.113.0/24.\n';
    assert.deepEqual([odd.code, odd.stderr], [1, text]);
    const number = String(before.length + 1);
    assert.equal((await run('firewall', 'remove', number, '--yes')).code, 0);
    assert.deepEqual(JSON.parse((await run('firewall', 'list', '--json')).stdout), before);
    assert.equal((await run('firewall', 'remove', number, '--yes')).code, 1);
    for (const ports of [['http'], ['99999'], ['90-80'], []]) {
      const refused = await run('firewall', 'allow', 'tcp', ...ports);
      assert.equal(refused.code, 2, `tcp ${ports}`);
      assert.match(refused.stderr, /Give (a port from 1 to 65535|the ports after tcp)/);
    }
    const asked = await run('firewall', 'remove', '1');
    assert.match(asked.stderr, /^Remove the rule for tcp 22 from 0\.0\.0\.0\/0\?/);
  });
});

test('a table fits the terminal: the widest cells are cut off', () => {
  const rows = [['1', 'x'.repeat(40), 'y'.repeat(12)]];
  const lines = renderTable(['ID', 'NAME', 'STATE'], rows, { columns: 30 }).split('\n');
  assert.ok(lines.every((line) => line.length <= 30));
  assert.match(lines[1] ?? '', /^1 {3}x+… {2}y+$/);
  assert.ok(renderTable(['ID', 'NAME', 'STATE'], rows).includes('x'.repeat(40)));
});

test('a narrow terminal leaves out spare columns and shortens ids before it cuts cells', () => {
  const ids = ['a'.repeat(32), 'b'.repeat(32)];
  const rows = ids.map((id) => [id, 'my-machine', 'us-east-1', '$0.05/hour']);
  const headers = ['ID', 'NAME', 'REGION', 'PRICE'];
  assert.equal(
    renderTable(headers, rows, { columns: 45, spare: ['REGION'] }),
    [
      'ID        NAME        REGION     PRICE',
      'aaaaaaaa  my-machine  us-east-1  $0.05/hour',
      'bbbbbbbb  my-machine  us-east-1  $0.05/hour',
    ].join('\n'),
  );
  const [head, first, , , note] = renderTable(headers, rows, {
    columns: 40,
    spare: ['REGION'],
  }).split('\n');
  assert.equal(head, 'ID        NAME        PRICE');
  assert.equal(first, 'aaaaaaaa  my-machine  $0.05/hour');
  assert.equal(note, 'Not shown: REGION. See --json.');
  // Ids of requests differ at their end.
  const requests = [`${'c'.repeat(30)}01`, `${'c'.repeat(30)}02`].map((id) => [id, 'done']);
  assert.match(renderTable(['ID', 'STATUS'], requests, { columns: 30 }), /^c{10}02 {2}done$/m);
});

test('a text is broken between words, beside its indent', () => {
  assert.equal(wrapText('one two three four five six', 4, 25), 'one two three four\n    five six');
  assert.equal(wrapText('one two', 4, undefined), 'one two');
});
