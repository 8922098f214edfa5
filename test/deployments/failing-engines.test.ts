// Engines that end or stop answering while they serve, and requests that are refused because a start takes long.

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { copyFileSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { afterEach, before, describe, test } from 'node:test';
import { createLiveness } from '#deployments/engines/liveness.ts';
import { builtinModel } from '#inference/engines/local/builtin.ts';
import { createHandClock, createRunningClock } from '#test/support/clock.ts';
import { openTestDeployments, type TestDeployments } from '#test/support/deployments.ts';
import { listen } from '#test/support/listen.ts';
import { makeFolder } from '#test/support/process.ts';
import { type SessionFetch, startTestServer, type TestServer } from '#test/support/server.ts';
import { until } from '#test/support/until.ts';

/** Goes by itself, because a failed start is repeated after a while, and can be turned. */
const clock = createRunningClock();
const { turn } = clock;

describe('an engine that fails while it serves', () => {
  let server: TestServer;
  let owner: SessionFetch;
  let deployments: TestDeployments;
  const isReady = async () => (await deployments.show('tested')).status === 'ready';
  before(async () => {
    server = await startTestServer({ clock });
    owner = await server.join();
    deployments = openTestDeployments(server, owner, clock);
  });
  afterEach(() => deployments.removeAll());
  const readMetrics = async () => (await fetch(`${server.url}/metrics`)).text();
  const readLog = async () => {
    const { data } = await deployments.call<{ lines: string[] }>('GET', '/tested/log');
    return data.lines;
  };

  test('by ending: its request waits for the next replica', async () => {
    await deployments.create('tested', { env: { FIRST_FILE: join(makeFolder(), 'first') } });
    const response = await clock.through(deployments.chat());
    assert.equal(response.status, 200, await response.text());
  });

  test('by not answering: it is replaced, and its request goes to the next replica', async () => {
    const env = { FIRST_FILE: join(makeFolder(), 'first'), FIRST_FAILS_BY: 'hanging' };
    await deployments.create('tested', { min: 1, env });
    await until('it is ready', isReady);
    const [first] = (await deployments.show('tested')).replicas;
    const answer = deployments.chat();
    for (let checks = 1; checks <= 3; checks++) {
      turn(10_000);
      await until(`check ${checks} has failed`, async () => {
        const { replicas } = await deployments.show('tested');
        const failed = (await readLog()).filter((line) => line === 'a failed health check');
        return failed.length >= checks || replicas[0]?.id !== first?.id;
      });
    }
    const response = await answer;
    assert.equal(response.status, 200, await response.text());
    assert.match((await deployments.show('tested')).reason ?? '', /stopped answering/);
  });

  test('by weights that were sound when it was created: one start fails, and requests are refused at once', async () => {
    const source = join(makeFolder(), 'model.gguf');
    copyFileSync(builtinModel.modelPath, source);
    const engine = { engine: 'builtin', program: null, args: null, source };
    await deployments.create('unsound', engine);
    truncateSync(source, 5_000);
    const response = await deployments.chat();
    const text = await response.text();
    assert.equal(response.status, 503, text);
    assert.match(text, /not a sound GGUF file\..*deployment_unavailable/);
    assert.equal(response.headers.get('retry-after'), null);
    assert.equal(response.headers.get('x-should-retry'), 'false');
    const { status, reason } = await deployments.show('unsound');
    assert.deepEqual([status, reason?.includes(source)], ['failed', true]);
    assert.match(await readMetrics(), /^millrace_deployment_failed\{[^}]*"unsound"\} 1$/m);
    assert.match(
      await readMetrics(),
      /^millrace_deployment_failed_replicas_total\{[^}]*"unsound"\} 1$/m,
    );
  });

  test('before it starts: what names no program and no sound weights is refused', async () => {
    const file = (name: string, bytes: Buffer) => {
      const path = join(makeFolder(), name);
      writeFileSync(path, bytes);
      return path;
    };
    const whole = readFileSync(builtinModel.modelPath);
    const builtin = { engine: 'builtin', program: null, args: null };
    const vllm = { engine: 'vllm', program: process.execPath, args: null };
    for (const [given, message] of [
      [{ program: '/opt/absent' }, /program was not found\. \/opt\/absent is not an executable/],
      [{ program: 'absent-program' }, /program was not found/],
      [{ ...builtin, source: join(makeFolder(), 'no.gguf') }, /There are no such weights/],
      [{ ...builtin, source: file('random.gguf', randomBytes(10_000)) }, /not a sound GGUF file/],
      [{ ...builtin, source: file('short.gguf', whole.subarray(0, 99_999)) }, /not a sound GGUF/],
      [{ ...vllm, source: makeFolder() }, /not those of a model\. .* has no config\.json/],
    ] as const) {
      const { status, error } = await deployments.create('tested', given);
      assert.equal(status, 400);
      assert.match(error?.message ?? '', message);
    }
  });

  test('metrics show what it has, wants and holds', async () => {
    await deployments.create('tested', { env: { LOAD_MS: '300' } });
    const answer = deployments.chat();
    await until('it starts', async () =>
      /millrace_deployment_held_requests\{[^}]*\} 1/.test(await readMetrics()),
    );
    assert.match(await readMetrics(), /_replicas\{[^}]*"tested",millrace_state="starting"\} 1/);
    assert.match(await readMetrics(), /_replicas_wanted\{[^}]*"tested"\} 1/);
    assert.equal((await answer).status, 200);
    const after = await readMetrics();
    assert.match(after, /_replicas\{[^}]*"tested",millrace_state="ready"\} 1/);
    assert.match(after, /millrace_deployment_start_seconds\{[^}]*\} [\d.]+/);
    await deployments.removeAll();
    await clock.until(
      'its metrics are gone',
      async () => !/^millrace_deployment.*"tested"/m.test(await readMetrics()),
    );
  });

  test('by never listening: the reason says so', async () => {
    const program = { program: '/bin/sh', args: ['-c', 'sleep 600'] };
    await deployments.create('tested', { ...program, min: 1, start_seconds: 60 });
    await until('it starts', async () => (await deployments.show('tested')).status === 'starting');
    turn(60_000);
    const reason = 'The engine did not answer within 60 seconds. Nothing listens at its port.';
    await clock.until('it fails', async () => (await deployments.show('tested')).reason === reason);
  });

  test('by a port in use: the reason says which port to use', async () => {
    const script = 'echo "listen EADDRINUSE: address already in use" >&2; exit 1';
    await deployments.create('tested', { program: '/bin/sh', args: ['-c', script], min: 1 });
    await clock.until('it fails', async () =>
      /the port is in use\. .* in PORT/.test((await deployments.show('tested')).reason ?? ''),
    );
  });

  test('by odd responses: it leads the server nowhere, and fills no memory', async (t) => {
    let asked = 0;
    const elsewhere = createServer((_request, response) => {
      asked += 1;
      response.end('{}');
    });
    const TARGET = `http://127.0.0.1:${await listen(t, elsewhere)}/secret`;
    const program = `
      let asked = 0;
      require('node:http').createServer((request, response) => {
        if (request.method === 'GET') console.log('checked');
        else asked += 1;
        if (request.method === 'GET' || asked === 1)
          return response.writeHead(307, { location: process.env.TARGET }).end();
        if (asked > 2) return response.end('{"choices":[{}]}');
        const more = () => { while (!response.destroyed && response.write(' '.repeat(65536))); };
        response.on('drain', more);
        more();
      }).listen(process.env.PORT, '127.0.0.1');`;
    await deployments.create('tested', { min: 1, args: ['-e', program], env: { TARGET } });
    await until('it is ready', isReady);
    turn(10_000);
    await until('it is checked', async () => (await readLog()).includes('checked'));
    const countChecks = async () => (await readLog()).filter((line) => line === 'checked').length;
    await until('it is checked again', async () => {
      // Again and again: while a check runs, no other is due.
      turn(10_000);
      return (await countChecks()) >= 2;
    });
    assert.equal(asked, 0);
  });

  test('a held stream tells its progress to clients that ask for it', async () => {
    await deployments.create('tested', { env: { LOAD_MS: '300' } });
    const headers = { 'x-millrace-progress': '1' };
    const text = await (await deployments.chat({ stream: true }, headers)).text();
    assert.match(text, /^: progress: starting$/m);
    assert.match(text, /\[DONE\]/);
    await deployments.removeAll();
    await deployments.create('tested', { env: { LOAD_MS: '300' } });
    const messages = [{ role: 'user', content: 'Hi' }];
    const json = { model: 'hermes3-8b', messages };
    const lines = (await (await server.fetch('/api/chat', { headers, json })).text()).split('\n');
    const progress = lines.map((line) => JSON.parse(line || '{}').progress);
    assert(progress.includes('starting'));
  });

  test('a request that is refused during the first start is told what the engine usually takes', async () => {
    await deployments.create('tested', { hold_requests: 1, env: { LOAD_MS: '1500' } });
    const held = deployments.chat();
    const refused = await until('a request is refused', async () => {
      const response = await deployments.chat();
      return response.status === 503 ? response : undefined;
    });
    const retryAfter = Number(refused.headers.get('retry-after'));
    assert(retryAfter > 20 && retryAfter <= 30, `retry-after is ${retryAfter}`);
    assert.equal((await held).status, 200);
  });

  test('a refused request is told when the start will probably be done, even by the next server', async () => {
    await deployments.create('tested', { hold_requests: 1, env: { LOAD_MS: '500' } });
    const answer = deployments.chat();
    await until('it starts', async () => (await deployments.show('tested')).status === 'starting');
    turn(40_000);
    assert.equal((await answer).status, 200);
    await server.stop();
    server = await startTestServer({ clock, on: server, presetApiKey: server.key });
    deployments = openTestDeployments(server, server.withCookie(owner.cookie), clock);
    const controller = new AbortController();
    const ask = (signal?: AbortSignal) =>
      server.fetch('/v1/chat/completions', {
        json: { model: 'hermes3-8b', messages: [{ role: 'user', content: 'Hi' }] },
        ...(signal && { signal }),
      });
    const first = ask(controller.signal).catch(() => {});
    let refused: Response | undefined;
    await until('a request is refused', async () => {
      refused = await ask(AbortSignal.timeout(100)).catch(() => undefined);
      return refused !== undefined;
    });
    assert.equal(refused?.status, 503);
    const retryAfter = Number(refused?.headers.get('retry-after'));
    assert(retryAfter > 30 && retryAfter <= 60, `retry-after is ${retryAfter}`);
    controller.abort();
    await first;
  });
});

test('an engine is dead after three failed checks in a row', async () => {
  const results = [true, false, false, true, false, false, false];
  const hand = createHandClock(0);
  const isAlive = async () => results.shift() ?? true;
  const liveness = createLiveness(hand, { everyMs: 1_000, isAlive });
  const replica = {};
  const check = () => liveness.check(replica, () => ({ url: 'http://127.0.0.1', key: null }));
  const seen = [check()];
  for (let at = 0; at < 7; at++) {
    hand.turn(1_000);
    check();
    await new Promise((resolve) => setImmediate(resolve));
    seen.push(check());
  }
  const [alive, suspect, dead] = ['alive', 'suspect', 'dead'];
  assert.deepEqual(seen, [alive, alive, suspect, suspect, alive, suspect, suspect, dead]);
});
