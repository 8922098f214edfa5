// The life of the local engine's child: started when needed, fair and bounded while busy, stopped at once
// by an abort, replaced after a crash, gone when idle or closed.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { after, describe, test } from 'node:test';
import type { EngineError } from '#inference/engine.ts';
import type { Usage } from '#inference/wire/response.ts';
import {
  call,
  chat,
  chatOf,
  collect,
  completion,
  createBuiltin,
  createBuiltinFor,
  toMessages,
  until,
} from '#test/support/builtin.ts';

const engine = createBuiltin({
  sequences: 2,
  queue: { maxLength: 3, maxWaitMs: 20_000 },
  limits: { maxChoices: 8, maxCompletionTokens: 4000 },
});
describe('the life of a local engine', () => {
  after(() => engine.close());

  const endless = (prompt: string) => completion({ prompt, ignore_eos: true, max_tokens: 1500 });
  const isIdle = () => {
    const { running, waiting, requests } = engine.status();
    return running === 0 && waiting === 0 && requests === 0;
  };
  const failsWith = (failure: string) => (error: EngineError) => error.failure === failure;

  describe('the child', () => {
    test('is not started before it is needed, and is loaded by preload', async () => {
      assert.deepEqual([engine.status().loaded, engine.status().pid], [false, null]);
      await engine.preload();
      assert.equal(engine.status().loaded, true);
    });

    test('that is killed fails its own requests only, and the next request gets a new one', async () => {
      const { pid } = engine.status();
      const running = engine.respond(endless('Once'), call());
      await until(() => engine.status().running === 1);
      process.kill(pid ?? 0, 'SIGKILL');
      await assert.rejects(running, (error: EngineError) => {
        return error.failure === 'unavailable' && /SIGKILL/.test(error.message);
      });
      const { choices } = await chatOf(engine, 'What is 2+2?');
      assert.equal(choices[0]?.message.content, '2 + 2 = 4.');
      assert.notEqual(engine.status().pid, pid);
    });

    test('that dies in the middle of a stream ends it with an error', async () => {
      const stream = await engine.stream(endless('Once'), call());
      const { pid } = engine.status();
      let seen = 0;
      await assert.rejects(async () => {
        for await (const _ of stream) if (++seen === 3) process.kill(pid ?? 0, 'SIGKILL');
      }, failsWith('unavailable'));
      assert.ok(seen >= 3);
      await chatOf(engine, 'Hello!');
    });

    test('ends when its parent does, also while it generates', async () => {
      const script = `
      import { createBuiltin } from '#test/support/builtin.ts';
      const engine = createBuiltin();
      const body = { model: 'm', prompt: 'Once', max_tokens: 1500, ignore_eos: true };
      const call = { signal: new AbortController().signal, caller: 'a', contextWindow: 2048 };
      const stream = await engine.stream({ kind: 'completion', body }, call);
      console.log(engine.status().pid);
      for await (const _ of stream);`;
      const parent = spawn(process.execPath, ['--input-type=module', '-e', script]);
      const pid = await new Promise<number>((resolve) => {
        parent.stdout.once('data', (data) => resolve(Number(String(data))));
      });
      assert.ok(isAlive(pid));
      parent.kill('SIGKILL');
      await until(() => !isAlive(pid));
    });

    test('ends when idle', async (t) => {
      const lazy = createBuiltinFor(t, { idleMs: 50 });
      await lazy.preload();
      const { pid } = lazy.status();
      await until(() => lazy.status().pid === null);
      assert.equal(lazy.status().loaded, false);
      await until(() => !isAlive(pid ?? 0));
    });

    test('that can’t load says why, and is not retried at once', async (t) => {
      const missing = createBuiltinFor(t, { modelPath: '/nowhere/model.gguf' });
      await assert.rejects(chatOf(missing, 'Hello!'), (error: EngineError) => {
        return error.failure === 'unavailable' && /could not be loaded/.test(error.message);
      });
      await assert.rejects(chatOf(missing, 'Hello!'), (error: EngineError) => {
        return error.failure === 'unavailable' && (error.retryAfterMs ?? 0) > 0;
      });
    });

    test('does not count the prompt of a refused request as waiting', async (t) => {
      const narrow = createBuiltinFor(t, { limits: { maxWaitingPromptTokens: 100 } });
      const prompt = 'river '.repeat(60);
      for (let round = 0; round < 2; round++)
        await assert.rejects(
          narrow.respond(completion({ prompt, logit_bias: { 999999: 1 } }), call()),
          (error: EngineError) => error.failure === 'rejected',
        );
      const { usage } = await narrow.respond(completion({ prompt, max_tokens: 1 }), call());
      assert.equal(usage.completion_tokens, 1);
    });

    test('that needs more memory than allowed is not loaded', async (t) => {
      const small = createBuiltinFor(t, { maxMemoryBytes: () => 50 * 2 ** 20 });
      await assert.rejects(chatOf(small, 'Hello!'), (error: EngineError) => {
        return error.failure === 'overloaded' && /MiB/.test(error.message);
      });
    });

    test('that is closed fails running and later requests', async (t) => {
      const closing = createBuiltinFor(t);
      const running = closing.respond(endless('Once'), call());
      const failed = assert.rejects(running, failsWith('unavailable'));
      await until(() => closing.status().running === 1);
      const { pid } = closing.status();
      await closing.close();
      await closing.close();
      await failed;
      assert.equal(isAlive(pid ?? 0), false);
      await assert.rejects(chatOf(closing, 'Hello!'), failsWith('unavailable'));
    });
  });

  describe('an abort', () => {
    const reason = new Error('The client left');

    test('between chunks frees the sequence and reports what was generated', async () => {
      const abort = new AbortController();
      let tokens = 0;
      const onUsage = (soFar: Usage) => {
        tokens = soFar.completion_tokens;
      };
      const stream = await engine.stream(endless('Once'), call({ signal: abort.signal, onUsage }));
      let seen = 0;
      await assert.rejects(async () => {
        for await (const _ of stream) if (++seen === 5) abort.abort(reason);
      }, reason);
      assert.equal(seen, 5);
      assert.ok(tokens >= 5);
      await until(isIdle);
    });

    test('while the prompt is read frees the sequence', async () => {
      const abort = new AbortController();
      const prompt = Array.from({ length: 1200 }, () => 300 + Math.floor(Math.random() * 7000));
      const task = completion({ prompt, max_tokens: 5 });
      const stream = engine.stream(task, call({ signal: abort.signal }));
      const rejected = assert.rejects(stream, reason);
      await until(() => engine.status().running === 1);
      abort.abort(reason);
      await rejected;
      await until(isIdle);
    });

    test("of a plain request, or before it is sent, rejects with the signal's reason", async () => {
      const abort = new AbortController();
      const own = new AbortController();
      const answer = engine.respond(endless('Twice'), call({ signal: own.signal }));
      const rejected = assert.rejects(answer, reason);
      await until(() => engine.status().running === 1);
      own.abort(reason);
      await rejected;
      await until(isIdle);
      abort.abort(reason);
      await assert.rejects(
        engine.respond(endless('Twice'), call({ signal: abort.signal })),
        reason,
      );
    });

    test('by a consumer that stops reading frees the sequence too', async () => {
      for await (const _ of await engine.stream(endless('Thrice'), call())) break;
      await until(isIdle);
    });
  });

  describe('the queue', () => {
    test('is bounded, and its refusal has a retry-after', async () => {
      const abort = new AbortController();
      const signal = abort.signal;
      const running = [1, 2].map((at) => engine.respond(endless(`Run ${at}`), call({ signal })));
      await until(() => engine.status().running === 2);
      const waiting = [1, 2, 3].map((at) =>
        engine.respond(endless(`Wait ${at}`), call({ signal })),
      );
      const refused = engine.respond(endless('Too many'), call());
      await assert.rejects(refused, (error: EngineError) => {
        return error.failure === 'overloaded' && (error.retryAfterMs ?? 0) > 0;
      });
      assert.equal(engine.status().queued, 3);
      abort.abort(new Error('enough'));
      for (const result of await Promise.allSettled([...running, ...waiting]))
        assert.equal(result.status, 'rejected');
      await until(isIdle);
    });

    test('refuses requests that wait too long', async (t) => {
      const hurried = createBuiltinFor(t, {
        sequences: 1,
        queue: { maxLength: 8, maxWaitMs: 300 },
      });
      await hurried.preload();
      const abort = new AbortController();
      const running = hurried.respond(endless('Run'), call({ signal: abort.signal }));
      await until(() => hurried.status().running === 1);
      await assert.rejects(hurried.respond(endless('Wait'), call()), failsWith('overloaded'));
      await until(() => hurried.status().waiting === 0);
      abort.abort();
      await assert.rejects(running);
    });

    test('serves callers in turn', async () => {
      const order: string[] = [];
      const ask = async (caller: string) => {
        await engine.respond(
          completion({ prompt: caller, max_tokens: 8, ignore_eos: true }),
          call({ caller }),
        );
        order.push(caller);
      };
      const abort = new AbortController();
      const blockers = [1, 2].map((at) =>
        engine.respond(endless(`Run ${at}`), call({ signal: abort.signal })),
      );
      await until(() => engine.status().running === 2);
      const all = [ask('greedy'), ask('greedy'), ask('modest')];
      await until(() => engine.status().waiting === 3);
      abort.abort();
      await Promise.allSettled(blockers);
      await Promise.all(all);
      assert.equal(order.at(-1), 'greedy');
    });

    test('serves the more urgent first', async () => {
      const order: number[] = [];
      const ask = async (priority: number) => {
        const task = completion({ prompt: `${priority}`, max_tokens: 8, ignore_eos: true });
        await engine.respond(task, call({ priority }));
        order.push(priority);
      };
      const abort = new AbortController();
      const blockers = [1, 2].map((at) =>
        engine.respond(endless(`Run ${at}`), call({ signal: abort.signal })),
      );
      await until(() => engine.status().running === 2);
      const all = [5, 0, -5].map(ask);
      await until(() => engine.status().waiting === 3);
      abort.abort();
      await Promise.allSettled(blockers);
      await Promise.all(all);
      assert.equal(order.at(-1), 5);
    });

    test('refuses a request that could generate more than a request may', async () => {
      for (const body of [
        { n: 9, max_tokens: 1 },
        { n: 4, max_tokens: 1500 },
      ])
        await assert.rejects(engine.respond(completion(body), call()), failsWith('rejected'));
    });
  });

  test('a long prompt that is repeated is read from the cache', async () => {
    const task = chat({ messages: toMessages('Count the sheep. '.repeat(60)), max_tokens: 2 });
    const first = await engine.respond(task, call());
    const again = await engine.respond(task, call());
    const cached = again.usage.prompt_tokens_details?.cached_tokens ?? 0;
    assert.ok(cached > first.usage.prompt_tokens - 5);
    assert.equal(again.usage.prompt_tokens, first.usage.prompt_tokens);
    const shared = await collect(
      await engine.stream(
        chat({
          messages: [...toMessages('Count the sheep. '.repeat(60)), ...toMessages('Now!')],
          max_tokens: 1,
        }),
        call(),
      ),
    );
    assert.ok((shared.at(-1)?.usage?.prompt_tokens_details?.cached_tokens ?? 0) > 100);
  });

  function isAlive(pid: number): boolean {
    try {
      process.kill(pid, 0);
      return true;
    } catch {
      return false;
    }
  }
});
