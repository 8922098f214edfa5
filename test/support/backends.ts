// Backends of one model for tests of routing, with real health records and scripted engines.

import type { Backend, BackendList, Observation } from '#inference/backends/backend.ts';
import { createHealth, type HealthRecord } from '#inference/backends/health.ts';
import { type Call, type Engine, EngineError, type Task } from '#inference/engine.ts';
import { foldChunks } from '#inference/wire/fold.ts';
import type { EngineChunk, WireEvents } from '#inference/wire/response.ts';
import { type Clock, systemClock } from '#lib/clock.ts';

export interface TestBackend extends Backend {
  weight: number;
  concurrency: number | null;
  continues: boolean;
  draining: boolean;
  readonly health: HealthRecord;
  readonly observed: Observation[];
}

export function newBackend(
  name: string,
  given: Partial<TestBackend> = {},
  clock: Clock = systemClock,
): TestBackend {
  const settings = { ejectAfter: 3, ejectMs: 1000, maxEjectMs: 10_000 };
  const observed: Observation[] = [];
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
    isReplica: false,
    hold: null,
    contextWindow: null,
    outstanding: 0,
    taken: 0,
    pace: () => 1,
    exceeded: () => {},
    health: createHealth(clock, { settings: () => settings, random: () => 1 }),
    observed,
    observe: (request) => observed.push(request),
    ...given,
  };
}

export const listOf = (...backends: Backend[]): BackendList => ({
  forModel: () => backends,
  hasEnded: async () => false,
  close: async () => {},
});

/** An engine that streams what the script yields. A plain response is the same, folded. */
export function newEngine(
  name: string,
  script: (task: Task, call: Call) => AsyncIterable<EngineChunk | WireEvents> = failIfAsked,
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
        if (typeof item === 'string') throw new Error('A plain response is made of chunks');
        chunks.push(item);
      }
      return foldChunks(task.kind, chunks);
    },
    countPromptTokens: async () => 1,
    close: async () => {},
  };
}

async function* failIfAsked(): AsyncGenerator<EngineChunk> {
  yield Promise.reject(new EngineError('unavailable', 'This engine must not be asked.'));
}
