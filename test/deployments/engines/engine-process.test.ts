// The process of an engine, where the server's own process is short of something.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { promisify } from 'node:util';

test('without file descriptors an engine is not started, and the server goes on', async () => {
  const module = new URL('../../../src/deployments/engines/engine-process.ts', import.meta.url)
    .href;
  const program = `
    import { openSync } from 'node:fs';
    import { startEngineProcess } from ${JSON.stringify(module)};
    try { for (;;) openSync('/dev/null', 'r'); } catch {}
    const place = { command: ['true'], env: {}, folder: '/', home: '/' };
    const engine = startEngineProcess(place);
    const ended = await engine.ended;
    await engine.stop();
    process.stdout.write(ended);`;
  const command = 'ulimit -n 64; exec "$0" --input-type=module-typescript -e "$1"';
  const run = promisify(execFile)('/bin/sh', ['-c', command, process.execPath, program]);
  assert.match((await run).stdout, /^The engine could not be started: spawn .* EMFILE\.$/);
});
