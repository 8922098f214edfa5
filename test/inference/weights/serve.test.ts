// The whole way: real weights from the hub, pulled for an id, answer that id's chats at once and stop when
// they are removed.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { it } from 'node:test';
import type { Pull } from '#inference/weights/schema.ts';
import { startHub } from '#test/support/hub.ts';
import { startTestServer } from '#test/support/server.ts';
import { until } from '#test/support/until.ts';

const model = 'llama3.2-3b-instruct';
const repo = 'bartowski/Llama-3.2-3B-Instruct-GGUF';
const file = 'Llama-3.2-3B-Instruct-Q4_K_M.gguf';
const root = '/dashboard/api/weights';
const gguf = join(import.meta.dirname, '../../../model/millrace-builtin-23m-q8_0.gguf');

it('pulled weights serve their model without a restart, until they are removed', async () => {
  const hub = await startHub();
  hub.add(repo, { [file]: await readFile(gguf) });
  const server = await startTestServer({
    config: {
      models: { hub_url: hub.url, disk_reserve_gib: 0 },
      inference: { preload: false },
    },
  });
  const owner = await server.join();
  const servedBy = async (id: string) => {
    const response = await server.fetch('/v1/chat/completions', {
      json: { model: id, max_tokens: 4, messages: [{ role: 'user', content: 'Hello' }] },
    });
    assert.equal(response.status, 200, await response.clone().text());
    return response.headers.get('x-served-by');
  };

  assert.equal(await servedBy(model), 'builtin');
  const asked = await owner(`${root}/pulls`, { json: { model } });
  const { id, name } = (await asked.json()) as Pull;
  await until('the pull is done', async () => {
    const pull = (await (await owner(`${root}/pulls/${id}`)).json()) as Pull;
    assert.equal(pull.error, null);
    return pull.state === 'done';
  });
  assert.equal(await servedBy(model), name);
  assert.equal(await servedBy('hermes3-8b'), 'builtin');
  assert.equal((await owner(`${root}/${name}`, { method: 'DELETE' })).status, 200);
  const body = { model, max_tokens: 4, messages: [{ role: 'user', content: 'Hello' }] };
  const refused = await server.fetch('/v1/chat/completions', { json: body });
  const { error } = (await refused.json()) as { error: { code: string } };
  assert.deepEqual([refused.status, error.code], [503, 'no_backend']);
});
