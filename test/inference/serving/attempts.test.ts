// Which backend is tried when one fails, what the failure means for its health, and which error a client gets.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { EngineError, type Task } from '#inference/engine.ts';
import { createCatalog } from '#inference/models/catalog.ts';
import { Router } from '#inference/routing/router.ts';
import { type AttemptParts, newAttemptLog, respond } from '#inference/serving/attempts.ts';
import type { Plan } from '#inference/serving/plan.ts';
import { openStream } from '#inference/serving/resumable-stream.ts';
import type { EngineChunk } from '#inference/wire/response.ts';
import { systemClock } from '#lib/clock.ts';
import { listOf, newBackend, newEngine, type TestBackend } from '#test/support/backends.ts';
import { newCall } from '#test/support/engine-call.ts';
import { until } from '#test/support/until.ts';

const served = createCatalog().find('hermes3-8b');
assert(served !== undefined);

const task: Task = {
  kind: 'chat',
  body: { model: 'm', stream: true, messages: [{ role: 'user', content: 'Hello' }] },
};

const plan: Plan = { served, task, promptTokens: null, unfit: new Set() };

const usage = {
  prompt_tokens: 1,
  completion_tokens: 1,
  total_tokens: 2,
  prompt_tokens_details: null,
};

async function* hello(): AsyncGenerator<EngineChunk> {
  const choice = { index: 0, logprobs: null, finish_reason: null };
  yield { choices: [{ ...choice, delta: { role: 'assistant', content: '' } }], usage: null };
  yield { choices: [{ ...choice, delta: { content: 'Hi' } }], usage: null };
  yield { choices: [{ ...choice, delta: {}, finish_reason: 'stop' }], usage: null };
  yield { choices: [], usage };
}

const failing = (name: string, error: unknown): TestBackend => {
  async function* fail(): AsyncGenerator<EngineChunk> {
    yield Promise.reject(error);
  }
  return newBackend(name, { engine: newEngine(name, fail) });
};
const well = (name: string): TestBackend => newBackend(name, { engine: newEngine(name, hello) });
const down = () => new EngineError('unavailable', 'It is down.');
const full = (retryAfterMs: number) => new EngineError('overloaded', 'Full.', { retryAfterMs });

function attemptsOf(...backends: TestBackend[]) {
  const list = listOf(...backends);
  const router = new Router(list, systemClock, { maxLength: 4, maxWaitMs: 1000 });
  const failed: string[] = [];
  const events: AttemptParts['events'] = {
    failed: ({ name }, { failure }) => failed.push(`${name} ${failure}`),
    continued: () => {},
  };
  const parts = { backends: list, router, events };
  const log = newAttemptLog();
  return {
    failed,
    log,
    answer: (call = newCall(), way = plan) => respond(parts, way, call, log),
    stream: (call = newCall()) => openStream(parts, plan, call, log),
  };
}

describe('an attempt', () => {
  test('a request that breaks connections is not sent to every backend', async () => {
    const broken = () => new EngineError('unavailable', 'It broke.', { isBroken: true });
    const ids: Task = { kind: 'completion', body: { model: 'm', prompt: [5, 99_999_999] } };
    const stops: Task = { ...task, body: { ...task.body, stop_token_ids: [9_999_999] } } as Task;
    for (const [asked, most] of [
      [task, 2],
      [ids, 1],
      [stops, 1],
    ] as const) {
      const backends = ['a', 'b', 'c'].map((name) => failing(name, broken()));
      const { failed, answer } = attemptsOf(...backends);
      await assert.rejects(answer(newCall(), { ...plan, task: asked }), /It broke/);
      assert.equal(failed.length, most);
    }
  });

  test('a backend that fails before its first byte is replaced by another, plain and streamed', async () => {
    for (const ask of ['answer', 'stream'] as const) {
      const backends = [failing('a', down()), failing('b', down()), well('c')];
      const { failed, log, ...attempts } = attemptsOf(...backends);
      if (ask === 'answer') await attempts.answer();
      else {
        const running = await attempts.stream();
        assert.equal(backends[2]?.outstanding, 1);
        await running.deliver(() => undefined);
      }
      assert.equal(log.backend, backends[2]);
      assert(failed.every((one) => /^[ab] unavailable$/.test(one)));
      assert.deepEqual(
        backends.map(({ outstanding }) => outstanding),
        [0, 0, 0],
      );
      for (const name of failed) {
        const backend = backends.find((one) => name.startsWith(one.name));
        assert.deepEqual([backend?.health.reason(), backend?.observed.length], ['It is down.', 1]);
      }
    }
  });

  describe('of the only backend', () => {
    /** Fails with the errors in turn, and then answers. */
    const recovering = (...errors: EngineError[]) => {
      const times: number[] = [];
      async function* answer(): AsyncGenerator<EngineChunk> {
        times.push(performance.now());
        const error = errors.shift();
        if (error !== undefined) throw error;
        yield* hello();
      }
      return { times, backend: newBackend('a', { engine: newEngine('a', answer) }) };
    };
    const refused = () => new EngineError('unavailable', 'It restarts.', { isPassing: true });

    test('is repeated twice after a passing failure, plain and streamed', async () => {
      for (const way of ['answer', 'stream'] as const) {
        const { backend, times } = recovering(refused(), full(0));
        await attemptsOf(backend)[way]();
        assert.equal(times.length, 3);
      }
      const { backend, times } = recovering(refused(), full(0), refused());
      await assert.rejects(attemptsOf(backend).answer());
      assert.equal(times.length, 3);
    });

    test('waits as long as the backend asks, unless that is too long', async () => {
      const { backend, times } = recovering(full(400));
      await attemptsOf(backend).answer();
      assert((times[1] ?? 0) - (times[0] ?? 0) >= 399);
      const later = recovering(full(60_000));
      await assert.rejects(attemptsOf(later.backend).answer(), { retryAfterMs: 60_000 });
      assert.equal(later.times.length, 1);
    });

    test('is not repeated after another failure, of a replica, or once the client has left', async () => {
      const other = recovering(down());
      await assert.rejects(attemptsOf(other.backend).answer());
      const replica = recovering(refused());
      Object.assign(replica.backend, { isReplica: true });
      await assert.rejects(attemptsOf(replica.backend).answer());
      const left = recovering(full(2_000));
      const leaving = new AbortController();
      const answer = attemptsOf(left.backend).answer(newCall({ signal: leaving.signal }));
      await until('it was tried', () => left.times.length === 1);
      leaving.abort(new Error('left'));
      await assert.rejects(answer, { message: 'left' });
      assert.deepEqual(
        [other, replica, left].map(({ times }) => times.length),
        [1, 1, 1],
      );
    });
  });

  test('each backend is tried once, and at most three are', async () => {
    const two = attemptsOf(failing('a', down()), failing('b', down()));
    await assert.rejects(two.answer(), /It is down/);
    assert.deepEqual(two.failed.sort(), ['a unavailable', 'b unavailable']);
    const four = attemptsOf(...['a', 'b', 'c', 'd'].map((name) => failing(name, down())));
    await assert.rejects(four.answer(), /It is down/);
    assert.equal(four.failed.length, 3);
  });

  test('a rejected request is not sent to a second backend and affects no backend’s health', async () => {
    const wrong = new EngineError('rejected', 'Wrong.');
    const backends = [failing('a', wrong), failing('b', wrong)];
    const { failed, answer } = attemptsOf(...backends);
    await assert.rejects(answer(), wrong);
    assert.deepEqual(failed, []);
    assert.equal(backends.flatMap(({ observed }) => observed).length, 1);
    assert(backends.every(({ health }) => health.reason() === null));
  });

  test('a request that all backends fail affects no health, one that another serves does', async () => {
    const doubtful = () => new EngineError('unavailable', 'It failed.', { isDoubtful: true });
    const backends = [failing('a', doubtful()), failing('b', doubtful())];
    const poison = attemptsOf(...backends);
    for (let at = 0; at < 4; at++) await assert.rejects(poison.answer(), /It failed/);
    assert.equal(poison.failed.length, 8);
    assert(backends.every(({ health }) => health.state() === 'healthy'));
    const broken = failing('a', doubtful());
    const { answer } = attemptsOf(broken, well('b'));
    await until('it is out', async () => {
      await answer();
      return broken.health.state() === 'ejected';
    });
  });

  test('a prompt too long for one backend is sent to those with more context, and refused if none has', async () => {
    const long = new EngineError('rejected', 'Too long.', { code: 'context_length_exceeded' });
    const small = failing('a', long);
    const same = { ...failing('b', down()), contextWindow: 4096 };
    const larger = attemptsOf({ ...small, contextWindow: 4096 }, same, {
      ...well('c'),
      contextWindow: 8192,
    });
    await larger.answer();
    assert.equal((larger.log.backend as TestBackend | null)?.name, 'c');
    assert(!larger.failed.includes('a unavailable'));
    await assert.rejects(attemptsOf(small, failing('c', long)).answer(), long);
    assert.equal(small.health.reason(), null);
  });

  test('a request that one backend has no endpoint for is sent to another, and refused if none has it', async () => {
    const missing = new EngineError('rejected', 'Chats only.', { code: 'model_not_supported' });
    const chatsOnly = failing('a', missing);
    await attemptsOf(chatsOnly, well('b')).answer();
    await assert.rejects(attemptsOf(chatsOnly, failing('b', missing)).answer(), missing);
    assert.equal(chatsOnly.health.reason(), null);
  });

  test('overload is not a failure, and its retry-after is sent if all are overloaded', async () => {
    const backends = [failing('a', full(9000)), failing('b', full(4000)), failing('c', down())];
    const { answer } = attemptsOf(...backends);
    await assert.rejects(answer(), (error: EngineError) => error.retryAfterMs === 4000);
    assert.deepEqual(
      backends.map(({ health }) => health.reason()),
      [null, null, 'It is down.'],
    );
    await attemptsOf(failing('a', full(9000)), well('b')).answer();
  });

  test('a client that leaves is not a failure of the backend, and no other is tried', async () => {
    const leaving = new AbortController();
    const gone = new Error('The client left');
    async function* slow(): AsyncGenerator<EngineChunk> {
      leaving.abort(gone);
      yield Promise.reject(gone);
    }
    const backends = ['a', 'b'].map((name) => newBackend(name, { engine: newEngine(name, slow) }));
    const { failed, answer } = attemptsOf(...backends);
    await assert.rejects(answer(newCall({ signal: leaving.signal })), gone);
    assert.deepEqual(failed, []);
    const [observed, ...others] = backends.flatMap((backend) => backend.observed);
    assert.deepEqual(others, []);
    assert.deepEqual([observed?.error, observed?.work?.isPartial], [null, true]);
    assert(backends.every(({ outstanding }) => outstanding === 0));
  });

  test('repeated failures during responses lead to an ejection', async () => {
    async function* breaking(): AsyncGenerator<EngineChunk> {
      yield { choices: [], usage: null };
      throw down();
    }
    const backend = newBackend('a', { engine: newEngine('a', breaking) });
    const { stream } = attemptsOf(backend);
    for (let at = 0; at < 3; at++) {
      assert.equal(backend.health.state(), 'healthy');
      const running = await stream();
      await assert.rejects(
        running.deliver(() => undefined),
        /It is down/,
      );
    }
    assert.equal(backend.health.state(), 'ejected');
    assert.equal(backend.outstanding, 0);
    await assert.rejects(stream(), (error: EngineError) => error.code === 'model_unavailable');
  });
});
