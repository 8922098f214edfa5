// Contexts: names for several servers, with the credentials of each sent to that server alone.

import assert from 'node:assert';
import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { after, before, beforeEach, describe, test } from 'node:test';
import { callMillrace, makeFolder, runMillrace } from '#test/support/process.ts';
import { startTestServer } from '#test/support/server.ts';

describe('contexts', () => {
  let home: string;
  const seen: IncomingHttpHeaders[] = [];
  const other = createServer((request, response) => {
    seen.push(request.headers);
    response.end(JSON.stringify({ data: [] }));
  });
  let otherUrl: string;
  const run = (args: string[], env: Record<string, string> = {}, input = '') =>
    callMillrace(args, { env: { XDG_CONFIG_HOME: home, ...env }, input });
  /** Its standard input is a file to it, which a thread has not. */
  const addContext = () =>
    runMillrace(['context', 'add', 'ci', `${otherUrl}/`, '--api-key-file', '-'], {
      env: { XDG_CONFIG_HOME: home },
      input: 'k\n',
    });
  const file = () => join(home, 'millrace', 'session.json');

  before(async () => {
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
    otherUrl = `http://127.0.0.1:${(other.address() as AddressInfo).port}`;
  });
  after(() => other.close());
  beforeEach(() => {
    home = makeFolder();
    seen.length = 0;
  });

  test('are added, listed, used and removed, and the file is for its owner alone', async () => {
    const added = await addContext();
    assert.equal(added.code, 0, added.stderr);
    assert.equal(statSync(file()).mode & 0o777, 0o600);
    await run(['context', 'add', 'far', 'https://far.example']);
    const twice = await run(['context', 'add', 'far', 'https://far.example']);
    assert.match(twice.stderr, /There is a context far already\./);
    assert.equal((await run(['context', 'add', 'a b', otherUrl])).code, 2);
    assert.equal((await run(['context', 'add', 'x', 'far.example'])).code, 2);

    assert.equal((await run(['context', 'use', 'ci'])).code, 0);
    const { stdout } = await run(['context', 'list']);
    assert.match(stdout, /^\* +ci +http\S+ +API key$/m);
    assert.match(stdout, /^ +far +https:\/\/far\.example +-$/m);

    assert.equal((await run(['instances', 'list'])).code, 0);
    assert.equal(seen[0]?.authorization, 'Bearer k');
    const kept = await run(['context', 'remove', 'ci']);
    assert.match(kept.stderr, /needs --yes/);
    assert.equal((await run(['context', 'remove', 'ci', '--yes'])).code, 0);
    assert(!readFileSync(file(), 'utf8').includes(otherUrl));
  });

  test('--context and MILLRACE_CONTEXT choose one for a command, with its credentials alone', async () => {
    await addContext();
    await run(['context', 'add', 'bare', otherUrl]);
    const elsewhere = { MILLRACE_URL: 'http://127.0.0.1:9', MILLRACE_API_KEY: 'of-elsewhere' };
    for (const [args, env] of [
      [['instances', 'list', '--context', 'ci'], elsewhere],
      [['--context', 'ci', 'instances', 'list'], elsewhere],
      [['instances', 'list'], { ...elsewhere, MILLRACE_CONTEXT: 'ci' }],
    ] as const)
      assert.equal((await run([...args], env)).code, 0, args.join(' '));
    assert.deepEqual([...new Set(seen.map(({ authorization }) => authorization))], ['Bearer k']);
    const bare = await run(['instances', 'list', '--context', 'bare'], elsewhere);
    assert.match(bare.stderr, /Not signed in/);
    const unknown = await run(['instances', 'list', '--context', 'nowhere']);
    assert.match(unknown.stderr, /There is no context nowhere\. Known contexts: ci, bare\./);
  });

  test('a sign-in belongs to its context, and files of earlier versions stay valid', async () => {
    const server = await startTestServer();
    mkdirSync(join(home, 'millrace'));
    const old = { url: otherUrl, session: 'old-session', device: null };
    writeFileSync(file(), JSON.stringify(old));
    const link = server.setupLink ?? '';
    const login = ['login', '--context', 'prod', '--link', link, '--email', 'me@example.com'];
    const joined = await run(login, {}, 'a long enough password\n');
    assert.equal(joined.code, 0, joined.stderr);
    assert.match((await run(['whoami', '--context', 'prod'])).stdout, /^me@example\.com/);
    await run(['instances', 'list']);
    assert.match(seen[0]?.cookie ?? '', /old-session/);
    // Earlier versions read the top level.
    const saved = JSON.parse(readFileSync(file(), 'utf8'));
    assert.deepEqual([saved.url, saved.session], [otherUrl, 'old-session']);
    assert.equal(saved.contexts.prod.url, server.url);

    const wrong = await run(['login', '--context', 'prod', '--url', otherUrl], {}, 'a\nb\n');
    assert.match(wrong.stderr, /Context prod is for http/);
    assert.equal((await run(['logout', '--context', 'prod'])).code, 0);
    assert.match((await run(['whoami', '--context', 'prod'])).stderr, /Not signed in/);
  });

  test('an API key from the environment is not saved by a sign-in', async () => {
    const server = await startTestServer();
    const link = server.setupLink ?? '';
    const login = ['login', '--link', link, '--email', 'me@example.com'];
    const env = { MILLRACE_API_KEY: 'of-the-environment' };
    assert.equal((await run(login, env, 'a long enough password\n')).code, 0);
    assert(!readFileSync(file(), 'utf8').includes('of-the-environment'));
  });
});
