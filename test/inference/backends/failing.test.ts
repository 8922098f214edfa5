// A backend that fails every request stays in use, because the requests may be at fault. People are told until one succeeds.

import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { BackendView } from '#inference/backends/schema.ts';
import { startScriptedUpstream } from '#inference/engines/scripted/server.ts';
import { createRunningClock } from '#test/support/clock.ts';
import { startTestServer } from '#test/support/server.ts';

const model = 'llama3.2-3b-instruct';

it('a backend whose requests failed is shown as failing until one succeeds', async (t) => {
  const clock = createRunningClock();
  const upstream = await startScriptedUpstream({ model: 'scripted' });
  const backends = [{ name: 'one', url: upstream.url, model: 'scripted', server: 'vllm' }];
  const health = { probe_seconds: 86_400, eject_after: 100 };
  const models = { catalog: { [model]: { backends } }, health };
  const server = await startTestServer({ clock, config: { models: models as object } });
  t.after(async () => {
    await server.stop();
    await upstream.close();
  });
  const owner = await server.join();
  const ask = async () => {
    const json = { model, messages: [{ role: 'user', content: 'Hi' }], max_tokens: 2 };
    return (await server.fetch('/v1/chat/completions', { json })).status;
  };
  const show = async () => {
    const { data } = (await (await owner('/dashboard/api/backends')).json()) as {
      data: BackendView[];
    };
    return data.find(({ name }) => name === 'one');
  };
  assert.equal(await ask(), 200);
  assert.equal((await show())?.failing, false);
  upstream.behave('html-error');
  assert.notEqual(await ask(), 200);
  clock.turn(600_000);
  const failing = await show();
  assert.deepEqual([failing?.failing, failing?.errors, failing?.health], [true, 0, 'healthy']);
  assert.notEqual(failing?.last_error, null);
  upstream.behave('answers');
  assert.equal(await ask(), 200);
  const well = await show();
  assert.deepEqual([well?.failing, well?.last_error], [false, null]);
});
