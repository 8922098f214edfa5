// The cache of compiled sources, which machines read as another user.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { globSync, mkdtempSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

test('what a process has compiled can be read by other users', () => {
  const NODE_COMPILE_CACHE = mkdtempSync(join(tmpdir(), 'millrace-cache-'));
  const module = new URL('../../src/lib/computer/compile-cache.ts', import.meta.url).href;
  // Killed, because Node writes the cache once more when it exits.
  const code = `
    const { shareCompileCache } = await import('${module}');
    shareCompileCache();
    process.kill(process.pid, 'SIGKILL');`;
  const run = () =>
    execFileSync(process.execPath, ['--input-type=module', '--eval', code], {
      env: { NODE_COMPILE_CACHE },
      stdio: 'ignore',
    });
  assert.throws(run, { signal: 'SIGKILL' });
  const files = globSync(`${NODE_COMPILE_CACHE}/*/*`);
  assert(files.length > 0);
  for (const file of files) assert.equal(statSync(file).mode & 0o044, 0o044, file);
});
