// What every engine keeps, whatever answers behind it: the contract of the boundary file as tests.

import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import type { Call, Engine, Task } from '#inference/engine.ts';
import { foldChunks } from '#inference/wire/fold.ts';
import type { EngineChunk, Usage } from '#inference/wire/response.ts';
import { newCall, readStream } from '#test/support/engine-call.ts';

const reason = new Error('The client left');

const tasks: Task[] = [
  {
    kind: 'chat',
    body: {
      model: 'm',
      messages: [{ role: 'user', content: 'Hello!' }],
      temperature: 0,
      max_tokens: 8,
      n: 2,
    },
  },
  { kind: 'completion', body: { model: 'm', prompt: 'Once', temperature: 0, max_tokens: 8 } },
];

const endless: Task = {
  kind: 'completion',
  body: { model: 'm', prompt: 'Once', max_tokens: 1000, ignore_eos: true },
};

const call = (overrides: Partial<Call> = {}) => newCall({ contextWindow: 2048, ...overrides });

async function read(engine: Engine, task: Task): Promise<EngineChunk[]> {
  let usage: Usage | null = null;
  const onUsage = (soFar: Usage) => {
    usage = soFar;
  };
  return readStream(await engine.stream(task, call({ onUsage })), () => usage);
}

export function describeEngine(name: string, engine: Engine): void {
  describe(`the engine ${name}`, () => {
    after(() => engine.close());

    for (const task of tasks) {
      test(`ends every choice of a ${task.kind} once, and the stream with usage`, async () => {
        const chunks = await read(engine, task);
        const last = chunks.at(-1);
        assert.deepEqual(last?.choices, []);
        assert.ok(last?.usage);
        assert.ok(chunks.slice(0, -1).every(({ usage }) => usage === null));
        for (let index = 0; index < (task.body.n ?? 1); index++) {
          const own = chunks.flatMap(({ choices }) => choices.filter((it) => it.index === index));
          const ends = own.filter(({ finish_reason }) => finish_reason !== null);
          assert.equal(ends.length, 1);
          assert.equal(own.at(-1), ends[0]);
        }
      });

      test(`answers a ${task.kind} plainly as it streams it`, async () => {
        const plain = await engine.respond(task, call());
        const folded = foldChunks(task.kind, await read(engine, task));
        assert.deepEqual(folded.choices, plain.choices);
        assert.equal(folded.usage.total_tokens, plain.usage.total_tokens);
      });

      test(`reports usage while it answers a ${task.kind}, and the same at its end`, async () => {
        let last: Usage | null = null;
        const onUsage = (soFar: Usage) => {
          last = soFar;
        };
        const { usage } = await engine.respond(task, call({ onUsage }));
        assert.deepEqual(last, usage);
      });
    }

    test('throws the reason of an abort: before, while waiting, and between chunks', async () => {
      const gone = AbortSignal.abort(reason);
      await assert.rejects(engine.respond(endless, call({ signal: gone })), reason);
      const early = new AbortController();
      const answer = engine.respond(endless, call({ signal: early.signal }));
      early.abort(reason);
      await assert.rejects(answer, reason);
      const late = new AbortController();
      const stream = await engine.stream(endless, call({ signal: late.signal }));
      await assert.rejects(async () => {
        for await (const _ of stream) late.abort(reason);
      }, reason);
    });

    test('closes twice as well as once, and then refuses', async () => {
      await engine.close();
      await engine.close();
      await assert.rejects(engine.respond(endless, call()), { failure: 'unavailable' });
    });
  });
}
