// What engines beside the server use: memory of real processes, and GPUs that a stand-in for nvidia-smi reports.

import assert from 'node:assert/strict';
import { totalmem } from 'node:os';
import { afterEach, before, describe, test } from 'node:test';
import { findHeld } from '#deployments/stats/host-meter.ts';
import type { ReplicaStats } from '#deployments/stats/schema.ts';
import { openTestDeployments, type TestDeployments } from '#test/support/deployments.ts';
import { useNvidiaSmi } from '#test/support/nvidia-smi.ts';
import { startTestServer } from '#test/support/server.ts';
import { until } from '#test/support/until.ts';

const mib = 2 ** 20;

describe('replicas beside the server', () => {
  let deployments: TestDeployments;
  before(async () => {
    const server = await startTestServer();
    deployments = openTestDeployments(server, await server.join());
  });
  afterEach(() => deployments.removeAll());

  const measure = async (name: string) =>
    (await deployments.call<ReplicaStats[]>('GET', `/${name}/stats`)).data;
  const start = async (given: object) => {
    await deployments.create('tested', { min: 1, ...given });
    await until('it is ready', async () => (await deployments.show('tested')).status === 'ready');
  };
  /** A measurement is shared for a second, and may be older than the process. */
  const readMemory = () =>
    until('its memory is measured', async () => {
      const [stats] = await measure('tested');
      return stats && 'value' in stats.memory_bytes ? stats.memory_bytes.value : undefined;
    });

  test('of the built-in engine have a plausible memory, and no GPU where there is none', async () => {
    useNvidiaSmi(null);
    await start({ engine: 'builtin', program: null, args: [] });
    const [stats, ...others] = await measure('tested');
    assert.deepEqual(others, []);
    assert.equal(stats?.id, (await deployments.show('tested')).replicas[0]?.id);
    assert.deepEqual(stats?.gpus, { value: [] });
    assert(stats?.memory_total_bytes !== null && stats.memory_total_bytes <= totalmem());
    const bytes = await readMemory();
    // Node alone takes more, and the model has some 23 million parameters.
    assert(bytes > 40 * mib && bytes < stats.memory_total_bytes, `${bytes} bytes`);
  });

  test('are measured with what their processes hold', async () => {
    await start({ env: { HOLD_MIB: '300' } });
    const bytes = await readMemory();
    assert(bytes > 300 * mib && bytes < 900 * mib, `${bytes} bytes`);
  });

  test('show the GPUs on which their processes compute', async () => {
    await start({});
    const { data } = await deployments.call<{ lines: string[] }>('GET', '/tested/log');
    const [, pid] = /^process (\d+)$/m.exec(data.lines.join('\n')) ?? [];
    useNvidiaSmi({
      gpus: [
        'GPU-a, NVIDIA H200, 3, 100, 143771',
        'GPU-b, NVIDIA H200, 97, 43601, 143771',
        'GPU-c, NVIDIA H200, 0, 0, 143771',
      ],
      processes: ['GPU-a, 1, 100', `GPU-b, ${pid}, 43000`],
    });
    const gpus = await until('the GPU is measured', async () => {
      const [stats] = await measure('tested');
      return stats && 'value' in stats.gpus && stats.gpus.value.length > 0
        ? stats.gpus.value
        : undefined;
    });
    const expected = {
      model: 'NVIDIA H200',
      busy_percent: 97,
      memory_bytes: 43_601 * mib,
      total_bytes: 143_771 * mib,
    };
    assert.deepEqual(gpus, [expected]);
  });

  test('that have no engine yet are left out, and a deployment that does not exist is not found', async () => {
    await deployments.create('tested', {});
    assert.deepEqual(await measure('tested'), []);
    assert.equal((await deployments.call('GET', '/nowhere/stats')).status, 404);
  });

  test('are measured once for many who ask at the same time', async () => {
    await start({});
    const { calls } = useNvidiaSmi({ gpus: ['GPU-a, NVIDIA H200, 3, 100, 143771'] });
    await until('it is asked', async () => (await measure('tested')) && calls().length > 0);
    const before = calls().length;
    const all = await Promise.all(Array.from({ length: 20 }, () => measure('tested')));
    for (const one of all) assert.deepEqual(one, all[0]);
    assert(calls().length - before <= 4, 'two queries each second, and a second may have passed');
  });
});

describe('the GPUs of a process', () => {
  const addresses = ['GPU-aa-1', 'GPU-ab-2', 'GPU-ac-3'];
  const users = [
    { gpu: 'GPU-ac-3', pid: 12, memoryBytes: 1 },
    { gpu: 'GPU-aa-1', pid: 11, memoryBytes: 1 },
    { gpu: 'GPU-ab-2', pid: 99, memoryBytes: 1 },
  ];
  const pids = new Set([10, 11, 12]);

  test('are those that it uses, whatever it may see', () => {
    assert.deepEqual(findHeld(addresses, users, pids, '1'), ['GPU-aa-1', 'GPU-ac-3']);
  });

  test('are those that it may see if nvidia-smi lists no process of it', () => {
    const find = (visible: string | undefined) => findHeld(addresses, users, new Set([7]), visible);
    assert.deepEqual(find('0, 2'), ['GPU-aa-1', 'GPU-ac-3']);
    assert.deepEqual(find('GPU-ab'), ['GPU-ab-2']);
    assert.deepEqual(find(''), []);
    assert.deepEqual(find('-1'), []);
    assert.equal(find(undefined), null);
  });
});
