// Backends of one model for tests of who is chosen: real health, and engines that do what they are told.

import type { Backend, BackendList } from '#inference/backends/backend.ts';
import { createHealth, type HealthRecord } from '#inference/backends/health.ts';
import {
  type Call,
  type Engine,
  type EngineChunk,
  EngineError,
  type Task,
  type WireEvents,
} from '#inference/engine.ts';
import { foldChunks } from '#inference/fold.ts';
import { type Clock, systemClock } from '#lib/clock.ts';

export interface TestBackend extends Backend {
  weight: number;
  concurrency: number | null;
  continues: boolean;
  draining: boolean;
  readonly health: HealthRecord;
  readonly observed: { failed: boolean }[];
}

export function newBackend(
  name: string,
  given: Partial<TestBackend> = {},
  clock: Clock = systemClock,
): TestBackend {
  const settings = { ejectAfter: 3, ejectMs: 1000, ejectMsMost: 10_000 };
  const observed: { failed: boolean }[] = [];
  return {
    id: `m/${name}`,
    name,
    model: 'm',
    engine: newEngine(name),
    kind: 'upstream',
    weight: 1,
    concurrency: null,
    continues: true,
    draining: false,
    contextWindow: null,
    outstanding: 0,
    health: createHealth(clock, { settings: () => settings, random: () => 1 }),
    observed,
    observe: (request) => observed.push(request),
    ...given,
  };
}

export const listOf = (...backends: Backend[]): BackendList => ({
  forModel: () => backends,
  close: async () => {},
});

/** Streams what the script yields, and answers with the same folded. */
export function newEngine(
  name: string,
  script: (task: Task, call: Call) => AsyncIterable<EngineChunk | WireEvents> = sayNothing,
): Engine {
  return {
    name,
    async stream(task, call) {
      const iterator = script(task, call)[Symbol.asyncIterator]();
      const first = await iterator.next();
      return (async function* () {
        if (first.done === true) return;
        yield first.value;
        yield* { [Symbol.asyncIterator]: () => iterator };
      })();
    },
    async respond(task, call) {
      const chunks: EngineChunk[] = [];
      for await (const item of script(task, call)) {
        if (typeof item === 'string') throw new Error('A plain answer is made of chunks');
        chunks.push(item);
      }
      return foldChunks(task.kind, chunks);
    },
    countPromptTokens: async () => 1,
    close: async () => {},
  };
}

async function* sayNothing(): AsyncGenerator<EngineChunk> {
  yield Promise.reject(new EngineError('unavailable', 'This engine was not to be asked.'));
}
