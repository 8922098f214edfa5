// One id behind which a server elsewhere and weights on this machine answer at once: each does what it can.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { it } from 'node:test';
import { startScriptedUpstream } from '#inference/engines/scripted/server.ts';
import type { Pull } from '#inference/weights/schema.ts';
import { readEvents } from '#test/support/gateway.ts';
import { startHub } from '#test/support/hub.ts';
import { startTestServer } from '#test/support/server.ts';
import { until } from '#test/support/until.ts';

const model = 'llama3.2-3b-instruct';
const repo = 'bartowski/Llama-3.2-3B-Instruct-GGUF';
const file = 'Llama-3.2-3B-Instruct-Q4_K_M.gguf';
const gguf = join(import.meta.dirname, '../../../model/millrace-builtin-23m-q8_0.gguf');

it('an upstream and local weights share a model: by prefix, by window, by kind, and as each other’s fallback', async (t) => {
  const upstream = await startScriptedUpstream({ model: 'scripted' });
  const hub = await startHub();
  hub.add(repo, { [file]: await readFile(gguf) });
  const backends = [{ name: 'elsewhere', url: upstream.url, model: 'scripted', server: 'vllm' }];
  const server = await startTestServer({
    config: {
      models: {
        hub_url: hub.url,
        disk_reserve_gib: 0,
        catalog: { [model]: { backends } },
        health: { probe_seconds: 3600, eject_seconds: 0.1, max_eject_seconds: 0.2 },
      } as object,
      inference: { preload: false },
    },
  });
  t.after(async () => {
    await server.stop();
    await upstream.close();
  });
  const owner = await server.join();
  const asked = await owner('/dashboard/api/weights/pulls', { json: { model } });
  const { id, name } = (await asked.json()) as Pull;
  await until('the pull is done', async () => {
    const pull = (await (await owner(`/dashboard/api/weights/pulls/${id}`)).json()) as Pull;
    assert.equal(pull.error, null);
    return pull.state === 'done';
  });
  const ask = async (content: unknown, more: object = {}) => {
    const messages = [{ role: 'user', content }];
    const json = { model, max_tokens: 2, messages, ...more };
    const response = await server.fetch('/v1/chat/completions', { json });
    assert.equal(response.status, 200, await response.clone().text());
    return response;
  };
  const servedBy = async (content: unknown) => (await ask(content)).headers.get('x-served-by');

  const seen = new Set<string | null>();
  for (let prefix = 0; prefix < 24 && seen.size < 2; prefix++) {
    const first = await servedBy(`Prefix ${prefix}`);
    assert.equal(await servedBy(`Prefix ${prefix}`), first, 'the same prefix, the same backend');
    seen.add(first);
  }
  assert.deepEqual([...seen].sort(), [name, 'elsewhere'].sort());

  // The weights hold a few thousand tokens, which is what the longer prompt is over.
  const long = 'word '.repeat(9000);
  for (let prefix = 0; prefix < 6; prefix++) {
    assert.equal(await servedBy(`${prefix} ${long}`), 'elsewhere');
    const picture = [
      { type: 'text', text: `${prefix}` },
      { type: 'image_url', image_url: {} },
    ];
    assert.equal(await servedBy(picture), 'elsewhere');
  }

  upstream.behave('dies-at-once');
  for (let prefix = 0; prefix < 6; prefix++) assert.equal(await servedBy(`${prefix}`), name);
  upstream.behave('dies-after-first-chunk');
  const drain = { method: 'PATCH', json: { draining: true } };
  const path = `/dashboard/api/backends/${model}`;
  await until('it is tried again', async () => {
    const response = await ask(`Again ${Math.random()}`, { stream: true, max_tokens: 4 });
    const { finish } = await readEvents(response);
    assert(finish === 'length' || finish === 'stop', `${finish}`);
    return upstream.requests.at(-1)?.body.stream === true;
  });
  assert.equal((await owner(`${path}/${encodeURIComponent(name)}`, drain)).status, 200);
  upstream.behave('answers');
  await until('only the server elsewhere is left', async () => {
    const json = { model, max_tokens: 2, messages: [{ role: 'user', content: 'Hello' }] };
    const response = await server.fetch('/v1/chat/completions', { json });
    return response.headers.get('x-served-by') === 'elsewhere' && response.status === 200;
  });
});
