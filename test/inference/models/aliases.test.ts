// Other names for models: which one a name leads to, and that every endpoint takes them.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { UsageRequestPage } from '#accounts/usage/schema.ts';
import { startScriptedUpstream } from '#inference/engines/scripted/server.ts';
import { createCatalog } from '#inference/models/catalog.ts';
import { startTestServer } from '#test/support/server.ts';
import { until } from '#test/support/until.ts';

test('an id comes first, then the first pattern that matches', () => {
  const settings = {
    builtinIds: false,
    changes: new Map(['a', 'b', 'claude-3'].map((id) => [id, {}])),
  };
  const catalog = createCatalog({
    ...settings,
    aliases: [
      ['claude-*-mini', 'b'],
      ['claude-*', 'a'],
      ['exact', 'b'],
      ['*x*y*', 'b'],
    ],
  });
  const leadsTo = (name: string) => catalog.find(name)?.id;
  assert.equal(leadsTo('claude-3'), 'claude-3');
  assert.equal(leadsTo('claude-4'), 'a');
  assert.equal(leadsTo('claude-'), 'a');
  assert.equal(leadsTo('claude-4-mini'), 'b');
  assert.equal(leadsTo('claude-mini'), 'a');
  assert.equal(leadsTo('exact'), 'b');
  assert.equal(leadsTo('exacts'), undefined);
  assert.equal(leadsTo('1x2y3'), 'b');
  assert.equal(leadsTo('yx'), undefined);
  assert.equal(catalog.findById('claude-4'), undefined);
  assert.deepEqual(catalog.aliasesOf('b'), ['claude-*-mini', 'exact', '*x*y*']);
  catalog.replace(settings);
  assert.equal(leadsTo('claude-4'), undefined);
  assert.deepEqual(catalog.aliasesOf('b'), []);
});

test('endpoints take aliases, and name the model that serves', async (t) => {
  const upstream = await startScriptedUpstream();
  t.after(() => upstream.close());
  const backends = [{ name: 'u', url: upstream.url, model: 'scripted', server: 'vllm' }];
  const server = await startTestServer({
    config: {
      models: { catalog: { here: { backends } }, aliases: { 'claude-*': 'here' } } as object,
    },
  });
  t.after(() => server.stop());
  const model = 'claude-sonnet-4-5';
  const messages = [{ role: 'user', content: 'Hi' }];
  for (const [path, json] of [
    ['/v1/chat/completions', { model, messages }],
    ['/v1/completions', { model, prompt: 'Hi' }],
  ] as const) {
    const response = await server.fetch(path, { json });
    assert.equal(response.status, 200);
    assert.equal(((await response.json()) as { model: string }).model, 'here');
  }
  assert.deepEqual(
    upstream.requests.map(({ body }) => body.model),
    ['scripted', 'scripted'],
  );
  const found = (await (await server.fetch(`/v1/models/${model}`)).json()) as { id: string };
  assert.equal(found.id, 'here');
  const session = await server.join();
  const overview = (await (await session('/dashboard/api/weights')).json()) as {
    models: { id: string; aliases: string[] }[];
  };
  assert.deepEqual(overview.models.find(({ id }) => id === 'here')?.aliases, ['claude-*']);
  const row = await until('the request is listed', async () => {
    const page = await (await session('/dashboard/api/usage/requests?limit=10')).json();
    return (page as UsageRequestPage).data.find((one) => one.operation === 'chat');
  });
  assert.deepEqual([row.model, row.served_model], [model, 'here']);
});
