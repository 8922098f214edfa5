// What nvidia-smi prints, from a stand-in for it, and the processes that it names.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { describe, test } from 'node:test';
import { measureForeignMemory } from '#gpu/memory-in-use.ts';
import { readGpuStats, toFields, toGpuStats } from '#lib/computer/nvidia-smi.ts';
import { useNvidiaSmi } from '#test/support/nvidia-smi.ts';

describe('GPUs of this computer', () => {
  test('their load is read by UUID, and a figure that is not available is zero', () => {
    const csv = 'GPU-1, NVIDIA H200, 37, 1024, 143771\nGPU-2, NVIDIA H200, [N/A], 0, 143771\n';
    const stats = toGpuStats(toFields(csv));
    assert.deepEqual(stats.get('GPU-1'), {
      model: 'NVIDIA H200',
      busyPercent: 37,
      memoryBytes: 1024 ** 3,
      totalBytes: 143_771 * 1024 ** 2,
    });
    assert.equal(stats.get('GPU-2')?.busyPercent, 0);
  });

  test('nonsense from inside a machine is no figure', () => {
    const csv = 'GPU-1, x, Infinity, -5, 1e308\nGPU-2, x, 4000, 0.5, 9007199254740991\n';
    const figures = [...toGpuStats(toFields(csv)).values()];
    assert.deepEqual(
      figures.map(({ busyPercent, memoryBytes, totalBytes }) => [
        busyPercent,
        memoryBytes,
        Number.isSafeInteger(totalBytes),
      ]),
      [
        [0, 0, true],
        [100, 0, true],
      ],
    );
  });

  test('the memory of a program that this server started may become free, that of others not', async () => {
    const own = spawn('sleep', ['60']);
    useNvidiaSmi({ processes: [`GPU-1, ${own.pid}, 1024`, 'GPU-1, 1, 2048', 'GPU-2, 1, [N/A]'] });
    const foreign = await measureForeignMemory();
    own.kill();
    assert.deepEqual(
      [...foreign],
      [
        ['GPU-1', 2 * 1024 ** 3],
        ['GPU-2', 0],
      ],
    );
  });

  test('a program that fails is an error, not a computer without GPUs', async () => {
    useNvidiaSmi(null);
    await assert.rejects(readGpuStats());
  });
});
