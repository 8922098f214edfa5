// Engines that sleep while they are not needed: one that behaves as SGLang does, and the real built-in engine.

import assert from 'node:assert/strict';
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, before, describe, test } from 'node:test';
import { recipes } from '#deployments/engines/recipes.ts';
import { isSameEngine, parseSpec, toSpec } from '#deployments/ground/spec.ts';
import { systemClock } from '#lib/clock.ts';
import {
  makeWeights,
  openTestDeployments,
  type TestDeployments,
} from '#test/support/deployments.ts';
import { makeFolder } from '#test/support/process.ts';
import { startTestServer, type TestServer } from '#test/support/server.ts';
import { until } from '#test/support/until.ts';

/**
 * Goes by itself, because a failed start is repeated after a while, and can be turned. A turn wakes no chore: the checks that
 * become due would still be under way when an engine falls asleep.
 */
let turnedMs = 0;
const clock = { now: () => Date.now() + turnedMs, sleep: systemClock.sleep };

const engine = join(import.meta.dirname, '../support/deployed-engine.ts');

function writeEngine(): string {
  const program = join(makeFolder(), 'python3');
  writeFileSync(program, `#!/bin/sh\nexec ${process.execPath} ${engine} "$@"\n`);
  chmodSync(program, 0o755);
  return program;
}

describe('an idle deployment', () => {
  let server: TestServer;
  let deployments: TestDeployments;
  before(async () => {
    server = await startTestServer({ clock });
    deployments = openTestDeployments(server, await server.join());
  });
  afterEach(() => deployments.removeAll());

  const show = () => deployments.show('tested');
  const readLog = async () =>
    (await deployments.call<{ lines: string[] }>('GET', '/tested/log')).data.lines;
  const ladder = { asleep: 600, gone: 3_600 };
  const createSleeper = (env = {}) =>
    deployments.create('tested', {
      ...{ engine: 'sglang', program: writeEngine(), source: makeWeights(), args: [] },
      ...{ check_memory: false, ladder, env },
    });
  /** Makes the server look at its deployments now. */
  const tick = () => deployments.call('POST', '/tested', {});
  async function untilStatus(status: string, turnMs = 0) {
    await until('no request runs', async () => (await show()).running === 0);
    // The idle time begins when the server notices it.
    await tick();
    turnedMs += turnMs;
    await until(`it is ${status}`, async () => (await tick()).data.status === status);
  }

  test('sleeps, wakes for a request without a new start, and is removed at last', async () => {
    await createSleeper();
    assert.equal((await deployments.chat()).status, 200);
    const [first] = (await show()).replicas;
    await untilStatus('asleep', 600_000);
    await until('the engine sleeps', async () => (await readLog()).includes('fell asleep'));
    const { replicas } = await show();
    assert.deepEqual([replicas[0]?.id, replicas[0]?.state], [first?.id, 'asleep']);
    // No check of its health may wake it.
    turnedMs += 60_000;
    await tick();
    const response = await deployments.chat();
    assert.equal(response.status, 200, await response.text());
    assert(Number(response.headers.get('x-cold-start-ms')) > 0);
    assert.equal((await show()).replicas[0]?.id, first?.id);
    await until('the log says that it woke', async () => (await readLog()).includes('woke up'));
    const log = await readLog();
    assert(!log.includes('a request while it was asleep'), log.join('\n'));
    assert.equal(log.filter((line) => /^loading/.test(line)).length, 1);
    await untilStatus('asleep', 600_000);
    await untilStatus('idle', 3_000_000);
    await until('it is gone', async () => (await show()).replicas.length === 0);
  });

  test('is idle since its last request, however short that was', async () => {
    await createSleeper();
    for (let request = 0; request < 3; request++) {
      assert.equal((await deployments.chat()).status, 200);
      await until('no request runs', async () => (await show()).running === 0);
      assert.equal((await tick()).data.status, 'ready');
      turnedMs += 400_000;
    }
    assert.equal((await tick()).data.status, 'ready');
    turnedMs += 600_000;
    await until('it sleeps', async () => (await tick()).data.status === 'asleep');
  });

  test('is replaced if it does not wake, and that is a failed start', async () => {
    await createSleeper({ WAKE_STATUS: '500' });
    assert.equal((await deployments.chat()).status, 200);
    const [first] = (await show()).replicas;
    await untilStatus('asleep', 600_000);
    const response = await deployments.chat();
    assert.equal(response.status, 200, await response.text());
    const { replicas, reason } = await show();
    assert.notEqual(replicas[0]?.id, first?.id);
    assert.match(reason ?? '', /could not be woken: its status was 500/);
  });

  test('lets long requests of a surplus replica finish, and then takes the step that is due', async () => {
    const LAST_FILE = join(makeFolder(), 'last');
    await createSleeper({ LAST_FILE });
    await deployments.call('POST', '/tested', { min: 2, max: 2 });
    const states = async () => (await tick()).data.replicas.map(({ state }) => state).toSorted();
    await until('both are ready', async () => `${await states()}` === 'ready,ready');
    const answers: Response[] = [];
    await until('each has a request', async () => {
      // Different ones, because a replica that knows a prompt is preferred.
      const messages = [{ role: 'user', content: `${answers.length}` }];
      answers.push(await deployments.chat({ stream: true, messages }));
      return (await show()).replicas.every(({ requests }) => requests > 0);
    });
    await deployments.call('POST', '/tested', { min: 0 });
    turnedMs += 600_000;
    await until('one drains', async () => `${await states()}` === 'draining,ready');
    turnedMs += 1_200_000;
    await tick();
    writeFileSync(LAST_FILE, '');
    for (const answer of answers) assert.match(await answer.text(), /\[DONE\]/);
    await until('it sleeps', async () => (await states()).includes('asleep'));
    assert.equal((await states()).length, 2);
  });

  test('is removed if it does not fall asleep, and that is no failed start', async () => {
    await createSleeper({ SLEEP_STATUS: '500' });
    assert.equal((await deployments.chat()).status, 200);
    await untilStatus('idle', 600_000);
    await until('it is gone', async () => (await show()).replicas.length === 0);
    assert.equal((await show()).reason, null);
    assert.equal((await deployments.chat()).status, 200);
  });

  test('wakes when its minimum is raised, and does not sleep below it', async () => {
    await createSleeper();
    await deployments.chat();
    await untilStatus('asleep', 600_000);
    await deployments.call('POST', '/tested', { min: 1 });
    await untilStatus('ready');
    await tick();
    turnedMs += 7_200_000;
    for (let count = 0; count < 3; count++) assert.equal((await tick()).data.status, 'ready');
  });

  test('is removed when it is stopped or changed', async () => {
    await createSleeper();
    await deployments.chat();
    await untilStatus('asleep', 600_000);
    await deployments.call('POST', '/tested', { env: { VERSION: '2' } });
    await untilStatus('idle');
    await deployments.chat();
    await untilStatus('asleep', 600_000);
    await deployments.call('POST', '/tested/stop');
    await until('it is gone', async () => (await show()).replicas.length === 0);
  });

  test('with the built-in engine unloads the model, and loads it for a request', async () => {
    await deployments.create('tested', {
      ...{ engine: 'builtin', program: null, args: [], ladder },
    });
    const isUnloaded = (line: string) => line === 'the model was unloaded';
    for (let request = 0; request < 3; request++)
      assert.equal((await deployments.chat({ max_tokens: 1 })).status, 200);
    assert(!(await readLog()).some(isUnloaded), 'only the ladder unloads it');
    const [first] = (await show()).replicas;
    await untilStatus('asleep', 600_000);
    await until('its model is unloaded', async () => (await readLog()).some(isUnloaded));
    const response = await deployments.chat({ max_tokens: 1 });
    assert.equal(response.status, 200, await response.text());
    assert.equal((await show()).replicas[0]?.id, first?.id);
  });

  test('keeps steps that a change does not name, and null returns to the default', async () => {
    await createSleeper();
    const change = async (given: object | null) =>
      (await deployments.call('POST', '/tested', { ladder: given })).data.ladder;
    assert.deepEqual(await change({ gone: null }), { asleep: 600, stopped: null, gone: null });
    assert.equal((await show()).revision, 1);
    assert.deepEqual(await change(null), { asleep: null, stopped: null, gone: 600 });
    // SGLang sleeps only if it was started for that.
    assert.equal((await show()).revision, 2);
  });
});

test('settings of an earlier version, with one idle time, open', () => {
  const { ladder } = parseSpec('{"model":"m","engine":"builtin","idle_seconds":60}');
  assert.deepEqual(ladder, { asleep: null, stopped: null, gone: 60 });
});

test('vLLM sleeps only on machines, because it takes requests without a key while it may sleep', () => {
  const given = { name: 'n', model: 'm', engine: 'vllm', ladder: { asleep: 60 } } as const;
  assert.throws(() => toSpec(given), /"vllm" sleeps only on machines.* without a key/);
  assert.equal(toSpec({ ...given, runs_on: 'gpu_1x_h100' }).ladder.asleep, 60);
  const stored = parseSpec(
    '{"model":"m","engine":"vllm","ladder":{"asleep":60,"stopped":null,"gone":90}}',
  );
  assert.deepEqual(stored.ladder, { asleep: null, stopped: null, gone: 90 });
});

test('llama-server falls asleep by itself, so another time needs another engine', () => {
  const given = { name: 'n', model: 'm', engine: 'llama-server', source: '/m.gguf' } as const;
  const at = (asleep: number | null) => toSpec({ ...given, ladder: { asleep } });
  const place = { port: 1, key: '', folder: '', millrace: [] };
  const command = recipes['llama-server'].toCommand(at(60), place);
  assert(command.join(' ').endsWith('--sleep-idle-seconds 65'));
  assert(!isSameEngine(at(60), at(61)) && !isSameEngine(at(60), at(null)));
});
