// The long form of gguf.test.ts: mutates the header of a real model without end, or for the given number of rounds. What
// passes the check is opened by the real program's child process, which must not crash.

import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { EngineError } from '#inference/engine.ts';
import { builtinModel } from '#inference/engines/local/builtin.ts';
import { createLocalEngine } from '#inference/engines/local/parent/local.ts';
import { checkGguf, GgufError } from '#inference/gguf-check.ts';
import { mutate } from '#test/support/attack/gguf.ts';
import { createRandom } from '#test/support/random.ts';

const [rounds = Number.POSITIVE_INFINITY, seed = randomInt(2 ** 31)] = process.argv
  .slice(2)
  .map(Number);
const folder = mkdtempSync(join(tmpdir(), 'millrace-gguf-'));
const path = join(folder, 'model.gguf');
const model = readFileSync(builtinModel.modelPath);
/** The header of the built-in model ends here. */
const headerBytes = 276_000;
const random = createRandom(seed);
const results = { refused: 0, loaded: 0, refusedByLoader: 0, crashed: 0 };

console.log(`seed ${seed}`);
try {
  for (let round = 0; round < rounds; round++) {
    const header = mutate(model.subarray(0, headerBytes), random);
    writeFileSync(path, Buffer.concat([header, model.subarray(headerBytes)]));
    if (await isRefused()) results.refused++;
    else await load(round);
    if (round % 100 === 99) console.log(`${round + 1} files: ${JSON.stringify(results)}`);
  }
} finally {
  rmSync(folder, { recursive: true });
}
console.log(JSON.stringify(results));
process.exitCode = results.crashed === 0 ? 0 : 1;

async function isRefused(): Promise<boolean> {
  try {
    await checkGguf(path);
    return false;
  } catch (error) {
    assert(error instanceof GgufError, String(error));
    return true;
  }
}

/** The child says what it can't load. One that is killed by a signal has crashed. */
async function load(round: number): Promise<void> {
  const engine = createLocalEngine({
    ...builtinModel,
    modelPath: path,
    threads: 1,
    sequences: 1,
    grammars: { compile: () => assert.fail('no grammar is needed') },
  });
  try {
    await engine.preload();
    results.loaded++;
  } catch (error) {
    if (/killed by|exited with/.test((error as EngineError).message)) {
      results.crashed++;
      console.log(`round ${round}: ${(error as EngineError).message}`);
    } else results.refusedByLoader++;
  } finally {
    await engine.close();
  }
}
