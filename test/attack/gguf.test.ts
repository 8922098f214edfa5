// Hostile model files: each is refused with its reason before native code sees it, on a pull and from a path. The long
// form is `gguf.ts`.

import assert from 'node:assert/strict';
import { mkdtemp, readdir, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { builtinModel } from '#inference/engines/local/builtin.ts';
import { checkGguf, checkModelFiles, GgufError } from '#inference/gguf-check.ts';
import { hostileFiles, mutate, soundContent } from '#test/support/attack/gguf.ts';
import { chatOf, createBuiltinFor } from '#test/support/builtin.ts';
import { toGguf } from '#test/support/gguf.ts';
import { startHub } from '#test/support/hub.ts';
import { createRandom } from '#test/support/random.ts';
import { openTestWeights } from '#test/support/weights.ts';

const sound = toGguf(soundContent);

let folder: string;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'millrace-gguf-'));
});
after(() => rm(folder, { recursive: true }));

async function write(bytes: Buffer, name = 'model.gguf'): Promise<string> {
  const path = join(folder, name);
  await writeFile(path, bytes);
  return path;
}

describe('the header of a GGUF file', () => {
  test('of a sound model passes', async () => {
    await checkModelFiles(builtinModel.modelPath);
    await checkModelFiles(await write(sound));
  });

  for (const [name, content, reason] of hostileFiles)
    test(`is refused: ${name}`, async () => {
      const path = await write(toGguf(content));
      await assert.rejects(checkGguf(path), (error) => {
        assert(error instanceof GgufError, String(error));
        assert.match(error.message, reason);
        return true;
      });
    });

  test('is refused wherever the file is cut off', async () => {
    const path = await write(sound);
    for (let length = sound.length - 1; length >= 0; length--) {
      await truncate(path, length);
      await assert.rejects(checkGguf(path), GgufError, `${length} bytes`);
    }
  });

  test('never makes the check fail in another way, whatever bytes are changed', async () => {
    const random = createRandom(20261116);
    let passed = 0;
    for (let round = 0; round < 1500; round++) {
      const path = await write(mutate(sound, random));
      await checkGguf(path).then(
        () => passed++,
        (error) => assert(error instanceof GgufError, `round ${round}: ${error}`),
      );
    }
    // Changes of weights and texts are none of its business.
    assert(passed > 100 && passed < 1400, `${passed} passed`);
  });

  test('of every part of a split model is checked', async () => {
    const split = (count: number) =>
      toGguf({
        ...soundContent,
        metadata: [...soundContent.metadata, ['split.count', { u32: count }]],
      });
    const first = await write(split(2), 'big-00001-of-00002.gguf');
    await write(split(2).subarray(0, 200), 'big-00002-of-00002.gguf');
    await assert.rejects(checkModelFiles(first), /ends inside/);
    await write(split(2), 'big-00002-of-00002.gguf');
    await checkModelFiles(first);
    await assert.rejects(checkModelFiles(await write(split(3), 'one.gguf')), /not named so/);
    await assert.rejects(
      checkModelFiles(await write(split(2 ** 31), 'x.gguf')),
      /2147483648 parts/,
    );
  });
});

test('a model is not loaded from a hostile file, and its requests are told why', async (t) => {
  const [, content] = hostileFiles[0] ?? assert.fail();
  const path = await write(toGguf(content));
  const output: string[] = [];
  const engine = createBuiltinFor(t, {
    modelPath: path,
    onEvent: (event) => event.kind === 'output' && output.push(event.line),
  });
  await assert.rejects(
    chatOf(engine, 'Hello!'),
    /could not be loaded: The file of the model ends inside the tensor "output_norm\.weight"/,
  );
  // The native loader writes to the output what it finds.
  assert.deepEqual(output, []);
});

test('weights with a hostile header are not kept by a pull', async () => {
  const hub = await startHub();
  const [, content] = hostileFiles[0] ?? assert.fail();
  hub.add('o/n', { 'm-Q4_K_M.gguf': toGguf(content) });
  const weights = await openTestWeights(hub);
  const { id } = await weights.pulls.create(weights.person, { repo: 'o/n' });
  const row = await weights.ended(id);
  assert.equal(row.state, 'failed');
  assert.match(row.error ?? '', /^m-Q4_K_M\.gguf ends inside the tensor .*thrown away/);
  const files = await readdir(join(weights.dataDir, 'models'), { recursive: true });
  assert.deepEqual(
    files.filter((file) => /\.gguf(\.part)?$/.test(file)),
    [],
  );
});
