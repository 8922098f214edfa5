// What `millrace gpu build` deletes when it starts. The build itself is aborted before it runs a program.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { test } from 'node:test';
import { buildKernels } from '#gpu/build.ts';
import { cudaLibrary, gpuFolder, kernelsFolder } from '#gpu/kernels.ts';

test('a build deletes the folders of killed builds and old kernels, and nothing else', async (t) => {
  const dataDir = mkdtempSync(join(tmpdir(), 'millrace-gpu-'));
  t.after(() => rmSync(dataDir, { recursive: true }));
  const folder = gpuFolder(dataDir);
  const addKernels = (name: string, builtAt: number) => {
    const file = join(folder, name, cudaLibrary);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, '');
    utimesSync(file, builtAt, builtAt);
  };
  const current = basename(kernelsFolder(dataDir));
  addKernels(current, 100);
  addKernels('older', 200);
  addKernels('previous', 300);
  writeFileSync(join(folder, 'download-x-0.0.1.tgz'), '');
  const { pid: gone } = spawnSync('true');
  for (const name of [`build-${gone}-a`, `build-${process.ppid}-b`, 'other'])
    mkdirSync(join(folder, name, 'source'), { recursive: true });
  const options = {
    dataDir,
    architectures: ['90'],
    registry: null,
    onLine() {},
    signal: AbortSignal.abort(),
  };
  await assert.rejects(buildKernels(options));
  assert.deepEqual(
    readdirSync(folder).sort(),
    [`build-${process.ppid}-b`, 'other', 'previous', current].sort(),
  );
});
