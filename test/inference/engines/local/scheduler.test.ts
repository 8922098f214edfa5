// The scheduler beside a context whose batches end when a test says so: what happens if a batch or a sample fails, or a
// request is cancelled, while a sample is queued behind its batch.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Binding, RawContext } from '#inference/engines/local/child/binding.ts';
import type { Generation } from '#inference/engines/local/child/generation.ts';
import { createChoice } from '#inference/engines/local/child/output/choice.ts';
import { Scheduler } from '#inference/engines/local/child/scheduler.ts';
import { until } from '#test/support/until.ts';

/** Notes the calls that change the context, and leaves each batch open. No sequence can be copied. */
function openContext(initBatch?: () => void, gpu: Binding['gpu'] = false) {
  const calls: string[] = [];
  const batches: PromiseWithResolvers<void>[] = [];
  /** What is queued in the pool, in order. */
  const jobs: string[] = [];
  const secondThread = {
    park: () => void jobs.push('park'),
    release: () => void jobs.push('release'),
  };
  const context: Partial<RawContext> = {
    initBatch: initBatch ?? (() => calls.push('batch')),
    addToBatch: () => Uint32Array.of(0),
    disposeSequence: (sequence) => calls.push(`dispose ${sequence}`),
    copySequenceStateFromOtherSequence: () => Promise.reject(new Error('Out of memory')),
    decodeBatch() {
      const batch = Promise.withResolvers<void>();
      batches.push(batch);
      jobs.push('batch');
      return batch.promise;
    },
  };
  const binding = { context, sequences: 2, batchSize: 512, gpu } as Binding;
  return { calls, batches, jobs, scheduler: new Scheduler(binding, () => {}, secondThread) };
}

type Told = { errors: string[]; disposed: number };

function toGeneration(next: Generation['next']): Generation & Told {
  const told: Told = { errors: [], disposed: 0 };
  return Object.assign(told, {
    caller: 'a',
    priority: 0,
    prompt: [1, 2, 3],
    sharedPrompt: { reader: null, isRead: false },
    scoresPrompt: false,
    cancelled: false,
    started() {},
    async scored() {},
    next,
    failed: ({ message }: Error) => told.errors.push(message),
    dispose: () => told.disposed++,
  });
}

/** Ends the generation at its first token. */
const endAtOnce: Generation['next'] = async (_, computed) => {
  await computed;
  return null;
};

const settle = () => new Promise(setImmediate);

test('a sample that fails before its batch has ended leaves the context alone until then', async () => {
  const { calls, batches, scheduler } = openContext();
  const failing = toGeneration(() => Promise.reject(new Error('no sampler')));
  scheduler.submit(failing);
  await until('the batch runs', () => batches.length === 1);
  scheduler.submit(toGeneration(endAtOnce));
  await settle();
  assert.deepEqual([calls, failing.errors, failing.disposed], [['batch'], [], 0]);
  batches[0]?.resolve();
  await until('the next batch runs', () => batches.length === 2);
  assert.deepEqual([failing.errors, failing.disposed], [['no sampler'], 1]);
  assert.deepEqual(calls, ['batch', 'dispose 0', 'batch']);
  batches[1]?.resolve();
  await scheduler.stop();
});

test('a failed batch is reported instead of the sample that failed with it', async () => {
  const { batches, scheduler } = openContext();
  const failing = toGeneration(() => Promise.reject(new Error('no logits')));
  scheduler.submit(failing);
  await until('the batch runs', () => batches.length === 1);
  batches[0]?.reject(new Error('Eval has failed'));
  await until('it has failed', () => failing.errors.length > 0);
  await scheduler.stop();
  assert.deepEqual([failing.errors, failing.disposed], [['Eval has failed'], 1]);
});

test('a batch that can’t be built fails its generations without a sample', async () => {
  const { scheduler } = openContext(() => {
    throw new Error('Invalid batch size');
  });
  const asked: number[] = [];
  const generation = toGeneration(async (index) => {
    asked.push(index);
    return null;
  });
  scheduler.submit(generation);
  await until('it has failed', () => generation.errors.length > 0);
  await scheduler.stop();
  assert.deepEqual([generation.errors, asked], [['Invalid batch size'], []]);
});

test('a cancelled generation is disposed of after its batch, and another one reads the prompt', async () => {
  const { batches, scheduler } = openContext();
  const sample = Promise.withResolvers<number>();
  const first = toGeneration(() => sample.promise);
  const second = { ...toGeneration(endAtOnce), sharedPrompt: first.sharedPrompt };
  scheduler.submit(first);
  scheduler.submit(second);
  await until('the batch runs', () => batches.length === 1);
  scheduler.cancel(first);
  await settle();
  assert.deepEqual([first.disposed, scheduler.running, scheduler.waiting], [0, 1, 1]);
  sample.resolve(7);
  batches[0]?.resolve();
  await until('the second batch runs', () => batches.length === 2);
  assert.deepEqual([first.disposed, first.errors], [1, []]);
  assert.equal(second.sharedPrompt.reader, second);
  batches[1]?.resolve();
  await scheduler.stop();
});

test('a generation whose prefix can’t be copied fails alone, and the loop goes on', async () => {
  const { calls, batches, scheduler } = openContext();
  const prompt = Array.from({ length: 20 }, (_, at) => at);
  const running = { ...toGeneration(async () => 7), prompt };
  const failing = Object.assign(toGeneration(endAtOnce), { prompt });
  const last = toGeneration(endAtOnce);
  scheduler.submit(running);
  await until('the prompt is read', () => batches.length === 1);
  scheduler.submit(failing);
  scheduler.submit(last);
  batches[0]?.resolve();
  await until('the next batch runs', () => batches.length === 2);
  assert.deepEqual([failing.errors, failing.disposed], [['Out of memory'], 1]);
  assert.deepEqual([calls.at(-2), scheduler.running, scheduler.waiting], ['dispose 1', 2, 0]);
  scheduler.cancel(running);
  for (const batch of batches) batch.resolve();
  await until('the last one’s prompt is read', () => batches.length === 3);
  batches[2]?.resolve();
  await until('the last one has ended', () => last.disposed === 1);
  await scheduler.stop();
});

test('a choice without tokens does not end before its batch, which may fail', async () => {
  const { batches, scheduler } = openContext();
  const events: string[] = [];
  const options = {
    ...toGeneration(endAtOnce),
    ...{ maxTokens: 0, stops: [], callOpening: null, includeStop: false, topLogprobs: null },
    ...{ scorePrompt: null, onStart() {}, onToken() {}, onScore() {} },
    sampler: { dispose() {} },
    onError: ({ message }: Error) => events.push(message),
  };
  const output = { end: () => events.push('ended') };
  const [, , ...rest] = [null, null, options, output] as unknown as Parameters<typeof createChoice>;
  scheduler.submit(createChoice({} as never, {} as never, ...rest));
  await until('the batch runs', () => batches.length === 1);
  await settle();
  assert.deepEqual(events, []);
  batches[0]?.reject(new Error('Eval has failed'));
  await until('it has ended', () => events.length > 0);
  await scheduler.stop();
  assert.deepEqual(events, ['Eval has failed']);
});

for (const [device, gpu, expected] of [
  ['a GPU', 'cuda', ['batch', 'park', 'sample', 'sample', 'release']],
  ['a CPU', false, ['batch', 'park', 'sample', 'sample']],
] as const) {
  test(`on ${device}, the second thread ${gpu ? 'helps with' : 'leaves alone'} the samples of two sequences, after their batch`, async () => {
    const { batches, jobs, scheduler } = openContext(undefined, gpu);
    /** Generates one token and ends. */
    const generate = () => {
      let tokens = 0;
      return toGeneration(async (_, computed) => {
        jobs.push('sample');
        await computed;
        return tokens++ === 0 ? 7 : null;
      });
    };
    scheduler.submit(generate());
    scheduler.submit(generate());
    for (const prompt of [0, 1]) {
      await until('a prompt is read', () => batches.length === prompt + 1);
      assert.deepEqual(jobs.splice(0), ['batch', 'park', 'sample'], 'one sequence needs no help');
      batches[prompt]?.resolve();
    }
    await until('both generate', () => batches.length === 3);
    batches[2]?.resolve();
    await scheduler.stop();
    assert.deepEqual(jobs, expected);
  });
}
