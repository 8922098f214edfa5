// The process of an engine: what it is started with, and what happens if that fails.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { startEngineProcess } from '#deployments/engines/engine-process.ts';
import { systemClock } from '#lib/clock.ts';
import { makeFolder } from '#test/support/process.ts';

test('without file descriptors an engine is not started, and the server goes on', async () => {
  const module = new URL('../../../src/deployments/engines/engine-process.ts', import.meta.url)
    .href;
  const clock = new URL('../../../src/lib/clock.ts', import.meta.url).href;
  const program = `
    import { openSync } from 'node:fs';
    import { startEngineProcess } from ${JSON.stringify(module)};
    import { systemClock } from ${JSON.stringify(clock)};
    try { for (;;) openSync('/dev/null', 'r'); } catch {}
    const place = { command: ['true'], env: {}, folder: '/', home: '/' };
    const engine = startEngineProcess(systemClock, place);
    const ended = await engine.ended;
    await engine.stop();
    process.stdout.write(ended);`;
  const command = 'ulimit -n 64; exec "$0" --input-type=module-typescript -e "$1"';
  const run = promisify(execFile)('/bin/sh', ['-c', command, process.execPath, program]);
  assert.match((await run).stdout, /^The engine could not be started: spawn .* EMFILE\.$/);
});

test('an engine finds the programs beside it', async () => {
  const folder = makeFolder();
  const mode = 0o700;
  await writeFile(join(folder, 'engine'), '#!/bin/sh\nbeside\n', { mode });
  await writeFile(join(folder, 'beside'), '#!/bin/sh\necho found\n', { mode });
  const command = [join(folder, 'engine')];
  const engine = startEngineProcess(systemClock, { command, env: {}, folder: '/', home: '/' });
  await engine.ended;
  assert.deepEqual(engine.log(), ['found']);
});
