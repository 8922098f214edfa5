// A model that can't be loaded: distinguished from overload and from a failure in mid-answer, and the cause
// is in the log.

import assert from 'node:assert';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { builtinModel } from '#inference/engines/local/builtin.ts';
import { makeFolder, readFirstSecret, serveMillrace } from '#test/support/process.ts';

async function ask(inference: object) {
  const folder = makeFolder();
  const config = join(folder, 'millrace.yaml');
  writeFileSync(config, JSON.stringify({ inference }));
  const server = await serveMillrace(['--config', config]);
  const key = readFirstSecret(server.stdout(), 'First API key');
  const send = () =>
    fetch(`${server.url}/v1/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'hermes3-8b', prompt: 'x', max_tokens: 1 }),
    });
  const answers = [await send(), await send()];
  server.child.kill('SIGTERM');
  const { stderr } = await server.ended;
  return { answers, stderr };
}

async function assertUnavailable(answers: Response[]): Promise<void> {
  for (const response of answers) {
    const { error } = (await response.json()) as { error: { code: string; type: string } };
    assert.deepEqual(
      [response.status, error.code, error.type],
      [503, 'model_unavailable', 'service_unavailable_error'],
    );
    assert(Number(response.headers.get('retry-after')) >= 1);
    assert(response.headers.get('x-served-by'));
  }
}

test('a broken model file is a 503 with the cause in the log', async () => {
  const file = join(makeFolder(), 'broken.gguf');
  writeFileSync(file, readFileSync(builtinModel.modelPath).subarray(0, 2_000_000));
  const { answers, stderr } = await ask({ stand_in: file });
  await assertUnavailable(answers);
  assert.match(stderr, /"kind":"exited","reason":"(?!ended with)/);
});

test('a model over the memory limit is a 503 that the log explains', async () => {
  const { answers, stderr } = await ask({ memory_limit_gib: 0.01 });
  await assertUnavailable(answers);
  assert.match(stderr, /MiB are allowed/);
});
