// What becomes of a GPU that fails while a model is loaded. No machine with such a GPU is needed: the
// processes are played, everything that decides is real.

import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import type { startModelProcess } from '#inference/engines/local/parent/model-process.ts';
import { createSupervisor, type ProcessEvent } from '#inference/engines/local/parent/supervisor.ts';
import type { ChildOptions, ToChild, WireFailure } from '#inference/engines/local/protocol.ts';

type Played = {
  gpu: ChildOptions['gpu'];
  got: ToChild[];
  events: Parameters<typeof startModelProcess>[1];
};

const loaded = { kind: 'ready', window: 2048, threads: 1, memoryBytes: 1, gpu: false } as const;
const count = (id: number) => ({ kind: 'count', id, task: {} }) as unknown as ToChild;

function play(gpu: ChildOptions['gpu'] = 'auto') {
  const processes: Played[] = [];
  const seen: ProcessEvent[] = [];
  const failures: string[] = [];
  const supervisor = createSupervisor(
    {
      name: 'tiny',
      toChildOptions: () => ({ gpu }) as ChildOptions,
      idleMs: null,
      startProcess(options, events) {
        const played: Played = { gpu: options.gpu, got: [], events };
        processes.push(played);
        return { pid: null, send: (message) => played.got.push(message), close: async () => {} };
      },
    },
    {
      message() {},
      gone: (error) => failures.push(error.message),
      event: (event) => seen.push(event),
    },
  );
  const unable = (failure: WireFailure['failure'], message: string) =>
    processes
      .at(-1)
      ?.events.message({ kind: 'unable', failure: { failure, message, code: null, param: null } });
  return { supervisor, processes, seen, failures, unable };
}

suite('a GPU', () => {
  test('that ends the process as the model is loaded is left alone, and nothing asked is lost', async () => {
    const { supervisor, processes, seen, failures } = play();
    supervisor.ensure();
    for (const id of [1, 2, 3]) supervisor.send(count(id));
    supervisor.send({ kind: 'cancel', id: 2 });
    const [first] = processes;
    first?.events.output('load: done');
    first?.events.output(
      'CUDA error: the provided PTX was compiled with an unsupported toolchain.',
    );
    first?.events.output('a later error');
    first?.events.exit('was killed by SIGABRT', false);
    assert.deepEqual(
      processes.map(({ gpu }) => gpu),
      ['auto', false],
    );
    assert.deepEqual(first?.got, [], 'nothing is sent before the model is loaded');

    processes[1]?.events.message(loaded);
    await supervisor.ready();
    assert.deepEqual(processes[1]?.got, [count(1), count(3)]);
    supervisor.send(count(4));
    assert.deepEqual(processes[1]?.got.at(-1), count(4));
    assert.deepEqual(failures, []);
    const [told] = seen.filter((event) => event.kind === 'gpu_failed');
    assert.match(told?.reason ?? '', /^CUDA error: the provided PTX/);

    processes[1]?.events.exit('was killed by SIGKILL', false);
    supervisor.ensure();
    assert.equal(processes[2]?.gpu, false, 'not tried again');
  });

  test('on which a model can not be loaded is left alone too', () => {
    const { supervisor, processes, unable } = play();
    supervisor.ensure();
    unable('unavailable', 'Failed to create the context');
    processes[0]?.events.exit('exited with status 1', false);
    assert.equal(processes[1]?.gpu, false);
  });

  test('is not to blame when the model is refused for its memory', () => {
    const { supervisor, processes, failures, unable } = play();
    supervisor.ensure();
    unable('overloaded', 'The model needs 9 MiB, but only 8 MiB are allowed.');
    processes[0]?.events.exit('exited with status 1', false);
    assert.equal(processes.length, 1);
    assert.match(failures[0] ?? '', /9 MiB/);
  });

  test('is not to blame for a crash once the model is loaded, and is used again', () => {
    const { supervisor, processes, failures } = play();
    supervisor.ensure();
    processes[0]?.events.message({ ...loaded, gpu: 'cuda' });
    processes[0]?.events.exit('was killed by SIGSEGV', false);
    assert.equal(failures.length, 1);
    supervisor.ensure();
    assert.equal(processes[1]?.gpu, 'auto');
  });

  test('that is not used is not blamed: a model that crashes on the CPU fails', () => {
    const { supervisor, processes, failures } = play(false);
    supervisor.ensure();
    processes[0]?.events.exit('was killed by SIGABRT', false);
    assert.deepEqual(failures, ['The process that runs tiny was killed by SIGABRT.']);
    assert.equal(processes.length, 1);
  });
});
