// millrace status against a real server: signed in and not, once and repeatedly, while it is up and after it stopped.

import assert from 'node:assert';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { startScriptedUpstream } from '#inference/engines/scripted/server.ts';
import { callMillrace, makeFolder } from '#test/support/process.ts';
import { startTestServer, type TestServer } from '#test/support/server.ts';
import { ctrlC, typeMillrace } from '#test/support/terminal.ts';
import millrace from '../../package.json' with { type: 'json' };

describe('millrace status', () => {
  let server: TestServer;
  let env: Record<string, string>;
  before(async () => {
    server = await startTestServer();
    env = { HOME: makeFolder(), MILLRACE_URL: server.url, PATH: process.env.PATH ?? '' };
  });

  test('without a sign-in it says that the server is up, and how to see more', async () => {
    const { code, stdout } = await callMillrace(['status'], { env });
    assert.deepEqual(
      [code, stdout],
      [
        0,
        `Server    up at ${server.url}\nRun \`./millrace login\` to see models, machines and spend.\n`,
      ],
    );
  });

  test('signed in, it shows version, machines, spend and backends with their health', async (context) => {
    const link = server.setupLink ?? '';
    const login = ['login', '--link', link, '--email', 'me@example.com'];
    await callMillrace(login, { env, input: 'a long enough password\n' });
    const upstream = await startScriptedUpstream();
    context.after(() => upstream.close());
    const about = ['hermes3-8b', upstream.url, '--model', 'scripted', '--name', 'box'];
    const added = await callMillrace(['backends', 'add', ...about], { env });
    assert.equal(added.code, 0, added.stderr);

    const { code, stdout } = await callMillrace(['status'], { env });
    assert.equal(code, 0);
    const month = new Date().toISOString().slice(0, 7);
    assert.deepEqual(stdout.split('\n').slice(0, 3), [
      `Server    up at ${server.url}, version ${millrace.version}`,
      'Machines  none',
      `Spend     ${month} $0.00: $0.00 for models, $0.00 for machines`,
    ]);
    assert.match(stdout, /^Models {4}1 with a backend, \d+ answered by the stand-in$/m);
    assert.match(stdout, /^hermes3-8b +box +http:\S+ +healthy +0 +0 +-$/m);

    const json = JSON.parse((await callMillrace(['status', '--json'], { env })).stdout);
    assert.deepEqual([json.status, json.details.version], ['ok', millrace.version]);
    assert.equal(json.details.spend.month, month);
  });

  test('a server can not control the terminal', async (context) => {
    const command = '\u001b]0;owned\u0007';
    const hostile = createServer((request, response) => {
      const name = request.url === '/readyz' ? 'status' : 'email';
      response.end(JSON.stringify({ [name]: `x${command}`, role: command }));
    });
    await new Promise<void>((resolve) => hostile.listen(0, '127.0.0.1', resolve));
    context.after(() => hostile.close());
    const url = `http://127.0.0.1:${(hostile.address() as AddressInfo).port}`;
    const home = makeFolder();
    mkdirSync(join(home, 'millrace'));
    const saved = JSON.stringify({ url, session: 'any' });
    writeFileSync(join(home, 'millrace', 'session.json'), saved);
    for (const [name, XDG_CONFIG_HOME] of [
      ['status', makeFolder()],
      ['whoami', home],
    ] as const) {
      const { stdout } = await callMillrace([name], {
        env: { XDG_CONFIG_HOME, MILLRACE_URL: url },
      });
      assert.match(stdout, /x\ufffd\]0;owned\ufffd/, name);
    }
  });

  test('an expired session does not make the server look down', async () => {
    const { url } = server;
    const home = makeFolder();
    mkdirSync(join(home, 'millrace'));
    const saved = JSON.stringify({ url, session: 'ended' });
    writeFileSync(join(home, 'millrace', 'session.json'), saved);
    const { code, stdout } = await callMillrace(['status'], {
      env: { XDG_CONFIG_HOME: home, MILLRACE_URL: url },
    });
    assert.equal(code, 0);
    assert(stdout.startsWith(`Server    up at ${url}\nRun \`./millrace login\``), stdout);
  });

  test('--watch shows when the server stops, until Ctrl-C; then status exits 1', async () => {
    const { code } = await typeMillrace(
      env,
      ['status', '--watch'],
      [`up at ${server.url}`, () => server.stop()],
      [`down at ${server.url}`, ctrlC],
    );
    assert.equal(code, 130);
    const after = await callMillrace(['status'], { env });
    assert.equal(after.code, 1);
    assert(after.stdout.startsWith(`Server    down at ${server.url}\nCan't reach the server`));
  });
});
