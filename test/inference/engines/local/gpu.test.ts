// Models and GPUs: a GPU that fails while a model is loaded, and the GPU that models share with machines. The child
// processes are scripted, so that no GPU is needed; everything that decides is real.

import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { pino } from 'pino';
import { createGpuLeases, type GpuLease } from '#inference/engines/local/parent/gpu-lease.ts';
import type { ModelProcessEvents } from '#inference/engines/local/parent/model-process.ts';
import { type ProcessEvent, Supervisor } from '#inference/engines/local/parent/supervisor.ts';
import type { ChildOptions, ToChild, WireFailure } from '#inference/engines/local/protocol.ts';

interface ScriptedProcess {
  /** Undefined until the child is told to load its model. */
  options: ChildOptions | undefined;
  /** Messages besides `load`. */
  received: ToChild[];
  events: ModelProcessEvents;
}

const silentLog = pino({ level: 'silent' });
const loaded = {
  kind: 'ready',
  modelKind: 'chat',
  window: 2048,
  threads: 1,
  memoryBytes: 1,
  gpu: false,
} as const;
const count = (id: number) => ({ kind: 'count', id, task: {} }) as unknown as ToChild;
const settled = () => new Promise((done) => setImmediate(done));

function startScripted(gpu: GpuLease['gpu'] = 'auto') {
  const processes: ScriptedProcess[] = [];
  const seen: ProcessEvent[] = [];
  const failures: string[] = [];
  const leases = { open: 0 };
  const supervisor = new Supervisor(
    {
      name: 'tiny',
      toChildOptions: () => ({}) as ChildOptions,
      async borrowGpu() {
        leases.open++;
        return { gpu, device: 'GPU-1', release: () => leases.open-- };
      },
      idleMs: null,
      startProcess(events) {
        const started: ScriptedProcess = { options: undefined, received: [], events };
        processes.push(started);
        return {
          pid: null,
          send(message) {
            if (message.kind === 'load') started.options = message.options;
            else started.received.push(message);
          },
          close: async () => {},
        };
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
  return { supervisor, processes, seen, failures, leases, unable };
}

suite('a GPU that fails', () => {
  test('while the model is loaded is not retried, and no request is lost', async () => {
    const { supervisor, processes, seen, failures, leases } = startScripted();
    supervisor.ensure();
    await settled();
    for (const id of [1, 2, 3]) supervisor.send(count(id));
    supervisor.send({ kind: 'cancel', id: 2 });
    const [first] = processes;
    first?.events.output('load: done');
    first?.events.output(
      'CUDA error: the provided PTX was compiled with an unsupported toolchain.',
    );
    first?.events.output('a later error');
    first?.events.exit('was killed by SIGABRT', false);
    await settled();
    assert.deepEqual(
      processes.map(({ options }) => options?.gpu),
      ['auto', false],
    );
    assert.deepEqual(first?.received, [], 'nothing is sent before the model is loaded');
    assert.equal(leases.open, 0, 'the GPU is given back');

    processes[1]?.events.message(loaded);
    await supervisor.ready();
    assert.deepEqual(processes[1]?.received, [count(1), count(3)]);
    supervisor.send(count(4));
    assert.deepEqual(processes[1]?.received.at(-1), count(4));
    assert.deepEqual(failures, []);
    const [reported] = seen.filter((event) => event.kind === 'gpu_failed');
    assert.match(reported?.reason ?? '', /^CUDA error: the provided PTX/);

    processes[1]?.events.exit('was killed by SIGKILL', false);
    supervisor.ensure();
    await settled();
    assert.equal(processes[2]?.options?.gpu, false, 'it is not tried again');
  });

  test('because the model can’t be loaded on it is not retried', async () => {
    const { supervisor, processes, unable } = startScripted();
    supervisor.ensure();
    await settled();
    unable('unavailable', 'Failed to create the context');
    processes[0]?.events.exit('exited with status 1', false);
    await settled();
    assert.equal(processes[1]?.options?.gpu, false);
  });

  test('is not blamed if the model is refused for its memory', async () => {
    const { supervisor, processes, failures, unable } = startScripted();
    supervisor.ensure();
    await settled();
    unable('overloaded', 'The model needs 9 MiB, but only 8 MiB are allowed.');
    processes[0]?.events.exit('exited with status 1', false);
    assert.equal(processes.length, 1);
    assert.match(failures[0] ?? '', /9 MiB/);
  });

  test('is not blamed for a crash after the model was loaded, and is used again', async () => {
    const { supervisor, processes, failures } = startScripted();
    supervisor.ensure();
    await settled();
    processes[0]?.events.message({ ...loaded, gpu: 'cuda' });
    processes[0]?.events.exit('was killed by SIGSEGV', false);
    assert.equal(failures.length, 1);
    supervisor.ensure();
    await settled();
    assert.equal(processes[1]?.options?.gpu, 'auto');
  });

  test('is not blamed if the model ran on the CPU', async () => {
    const { supervisor, processes, failures } = startScripted(false);
    supervisor.ensure();
    await settled();
    processes[0]?.events.exit('was killed by SIGABRT', false);
    assert.deepEqual(failures, ['The process that runs tiny was killed by SIGABRT.']);
    assert.equal(processes.length, 1);
  });
});

suite('the GPU that models share', () => {
  test('is given back when the child exits', async () => {
    const { supervisor, processes, leases } = startScripted();
    supervisor.ensure();
    await settled();
    assert.equal(processes[0]?.options?.device, 'GPU-1');
    processes[0]?.events.message({ ...loaded, gpu: 'cuda' });
    assert.equal(leases.open, 1);
    processes[0]?.events.exit('exited with status 0', true);
    assert.equal(leases.open, 0);
  });

  test('is given back if the model turns out to run on the CPU', async () => {
    const { supervisor, processes, leases } = startScripted();
    supervisor.ensure();
    await settled();
    processes[0]?.events.message(loaded);
    assert.equal(leases.open, 0);
  });

  test('is given back if the child exits before the GPU was taken', async () => {
    const { supervisor, processes, leases } = startScripted();
    supervisor.ensure();
    processes[0]?.events.exit('was killed by SIGKILL', true);
    await settled();
    assert.equal(leases.open, 0);
    assert.equal(processes[0]?.options, undefined);
  });

  test('is taken once for all models, and given back after the last', async () => {
    let held = 0;
    const source = {
      take: async () => `GPU-${++held}`,
      async giveBack() {
        held--;
      },
    };
    const borrow = createGpuLeases(source, silentLog);
    const [one, other] = await Promise.all([borrow(), borrow()]);
    assert.deepEqual([one?.device, other?.device, held], ['GPU-1', 'GPU-1', 1]);
    one?.release();
    one?.release();
    await settled();
    assert.equal(held, 1);
    other?.release();
    await settled();
    assert.equal(held, 0);
    assert.equal((await borrow()).device, 'GPU-1');
  });

  test('is not used if machines have all GPUs, or if the database does not answer', async () => {
    const giveBack = async () => {};
    const borrow = createGpuLeases({ take: async () => null, giveBack }, silentLog);
    assert.equal((await borrow()).gpu, false);
    const failing = { take: () => Promise.reject(new Error('no database')), giveBack };
    assert.equal((await createGpuLeases(failing, silentLog)()).gpu, false);
  });
});
