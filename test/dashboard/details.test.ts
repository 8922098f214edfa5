// The pages of one model, one API key and one request, with real requests.

import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import type { Page } from 'playwright-core';
import type { UsageRequest } from '#accounts/usage/schema.ts';
import type { WeightsOverview } from '#inference/weights/schema.ts';
import { checkAppearance, describeInBrowser, openPage } from '#test/support/browser.ts';
import {
  addBackends,
  createApiKey,
  type Dashboard,
  openAs,
  openDashboard,
  sendChat,
  signInAsOwner,
} from '#test/support/dashboard.ts';
import { until } from '#test/support/until.ts';

const model = 'llama3.1-8b-instruct';

describeInBrowser('detail pages', () => {
  let dashboard: Dashboard;
  let page: Page;
  let keyId: string;
  const open = (path: string) => page.goto(`${dashboard.url}/#${path}`);
  const factOf = (name: string) =>
    page.locator('.facts > div', { hasText: name }).locator('dd').innerText();

  before(async () => {
    dashboard = await openDashboard();
    ({ page } = dashboard);
    await addBackends(dashboard, [model]);
    const key = await createApiKey(dashboard, 'importer');
    for (const stream of [true, false, true]) {
      assert.equal((await sendChat(dashboard.url, key, { model, stream })).status, 200);
    }
    assert.equal((await sendChat(dashboard.url, key, { model: 'no-such-model' })).status, 404);
    await until('the requests are counted', async () => {
      const response = await page.context().request.get(`${dashboard.url}/dashboard/api/usage`);
      const { data } = (await response.json()) as { data: { requests: number }[] };
      return data[0]?.requests === 4;
    });
  });

  test('the list of models leads to a model with its backends, traffic and code', async () => {
    await open('/models');
    await page.getByRole('link', { name: model, exact: true }).click();
    await page.getByRole('heading', { name: model, level: 1 }).waitFor();
    await page.getByText('scripted', { exact: true }).waitFor();
    await page.getByRole('img', { name: /Bar chart of requests over time: scripted/ }).waitFor();
    assert.equal(await factOf('Requests'), '3');
    assert.match(await factOf('Latency p50 · p95'), /^\d+ ms · [\d.]+ m?s$/);
    assert.match(await factOf('First token p50 · p95'), /^\d+ ms · [\d.]+ m?s$/);
    assert.match(await factOf('Input price'), /^\$\d+\.\d+\/M tokens$/);
    for (const language of ['curl', 'Python', 'TypeScript']) {
      await page.getByRole('tab', { name: language }).click();
      const code = await page.getByRole('tabpanel').innerText();
      assert.ok(code.includes(model) && code.includes(dashboard.url), language);
    }
    await checkAppearance(page, 'model');
    await page.getByRole('radiogroup', { name: 'Metric' }).getByText('Cost').click();
    await page.getByRole('img', { name: /Bar chart of cost over time/ }).waitFor();
  });

  test('a model that only a stand-in answers for offers to serve the real one', async () => {
    await open('/models/hermes3-8b');
    await page.getByText('stand-in, not the real model').waitFor();
    await page.getByRole('link', { name: 'Serve the real model' }).click();
    await page.getByRole('dialog', { name: 'Pull weights' }).waitFor();
    await open('/models/no-such-model');
    await page.getByRole('heading', { name: 'Page not found' }).waitFor();
  });

  test('a model that embeds shows how, and no page offers to chat with it', async () => {
    const overview = `${dashboard.url}/dashboard/api/weights`;
    await page.route(overview, async (route) => {
      const response = await route.fetch();
      const body = (await response.json()) as WeightsOverview;
      const kinds: Record<string, 'embedding' | 'rerank'> = {
        'hermes3-8b': 'embedding',
        'hermes3-70b': 'rerank',
      };
      const models = body.models.map((one) => ({ ...one, kind: kinds[one.id] ?? one.kind }));
      await route.fulfill({ response, json: { ...body, models } });
    });
    await open('/models/hermes3-8b');
    const code = page.getByRole('tabpanel');
    await code.filter({ hasText: 'embeddings' }).waitFor();
    assert.equal(await page.getByRole('link', { name: 'Open in playground' }).count(), 0);
    await open('/models/hermes3-70b');
    await code.filter({ hasText: '/v1/rerank' }).waitFor();
    await open('/playground');
    await page.getByRole('combobox', { name: 'Model', exact: true }).click();
    await page.getByRole('option', { name: 'hermes3-405b', exact: false }).first().waitFor();
    for (const name of ['hermes3-8b', 'hermes3-70b'])
      assert.equal(await page.getByRole('option', { name: new RegExp(`^${name}\\b`) }).count(), 0);
    await page.unroute(overview);
  });

  test('the list of keys leads to a key with its usage, its limits and its last errors', async () => {
    await open('/api-keys');
    await page.getByRole('link', { name: 'importer', exact: true }).click();
    await page.getByRole('heading', { name: 'importer', level: 1 }).waitFor();
    keyId = /#\/api-keys\/([0-9a-f]{32})$/.exec(page.url())?.[1] ?? '';
    assert.notEqual(keyId, '');
    assert.equal(await factOf('Requests'), '4');
    assert.equal(await factOf('Errors'), '1 (25%)');
    const chart = page.getByRole('img', { name: /Bar chart of requests over time/ });
    assert.match((await chart.getAttribute('aria-label')) ?? '', /: llama\S+, Unknown model\./);
    const errors = page.getByRole('table', { name: 'Last errors' });
    await errors.getByRole('row', { name: /no-such-model.*model_not_found/s }).waitFor();
    await checkAppearance(page, 'api-key');
  });

  test('a key is renamed, limited and revoked on its page', async () => {
    await page.getByRole('button', { name: 'Edit' }).click();
    const dialog = page.getByRole('dialog', { name: 'Edit “importer”' });
    await dialog.getByLabel('Label').fill('nightly');
    await dialog.getByLabel('Monthly budget').fill('5');
    await dialog.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('heading', { name: 'nightly', level: 1 }).waitFor();
    await page.getByText(/^\$0\.0\d+ of \$5\.00$/).waitFor();
  });

  test('a request has the whole story of its row', async () => {
    await open('/usage/requests');
    const table = page.getByRole('table', { name: 'Requests' });
    const row = table.getByRole('row', { name: new RegExp(model) }).first();
    await row.getByRole('link', { name: /just now|ago/ }).click();
    await page.getByRole('heading', { name: /^Request …[0-9a-f]{12}$/ }).waitFor();
    const story = await page.locator('.story').innerText();
    assert.match(story, new RegExp(`Model requested\\s+${model}`));
    assert.match(story, /Backend\s+scripted/);
    assert.match(story, /API key\s+nightly/);
    assert.match(story, /Input tokens\s+\d/);
    assert.match(await factOf('Status'), /completed/);
    assert.match(await factOf('Duration'), /^[\d.]+ m?s$/);
    await checkAppearance(page, 'request');
    await page.locator('.story').getByRole('link', { name: 'nightly' }).click();
    await page.getByRole('heading', { name: 'nightly', level: 1 }).waitFor();
  });

  test('a link to a request needs only its ID, and an unknown one says so', async () => {
    const response = await page
      .context()
      .request.get(`${dashboard.url}/dashboard/api/usage/requests?status=refused`);
    const { data } = (await response.json()) as { data: UsageRequest[] };
    await open(`/usage/requests/${data[0]?.id}`);
    await page.getByText('model_not_found').waitFor();
    await open(`/usage/requests/${'f'.repeat(32)}`);
    await page.getByText('This request does not exist.').waitFor();
  });

  test('a viewer reads the pages and can change nothing there', async () => {
    const viewer = await openAs(dashboard, 'viewer');
    await viewer.goto(`${dashboard.url}/#/api-keys/${keyId}`);
    await viewer.getByRole('heading', { name: 'nightly', level: 1 }).waitFor();
    await viewer.getByText('About this key').waitFor();
    assert.equal(await viewer.getByRole('button', { name: /^(Edit|Revoke)$/ }).count(), 0);
    await viewer.goto(`${dashboard.url}/#/models/hermes3-8b`);
    await viewer.getByText('stand-in, not the real model').waitFor();
    assert.equal(await viewer.getByRole('link', { name: 'Serve the real model' }).count(), 0);
  });

  test('a revoked key leads back to the list, and its page says that it is gone', async () => {
    await open(`/api-keys/${keyId}`);
    await page.getByRole('button', { name: 'Revoke' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
    await page.getByRole('heading', { name: 'API keys', level: 1 }).waitFor();
    await open(`/api-keys/${keyId}`);
    await page.getByText('This API key does not exist.').waitFor();
  });

  test('a detail page asks for a sign-in and opens after it', async () => {
    const { page: guest } = await openPage();
    await guest.goto(`${dashboard.url}/#/models/${model}`);
    await signInAsOwner(guest);
    await guest.getByRole('heading', { name: model, level: 1 }).waitFor();
  });

  test('the console shows no errors', () => {
    assert.deepEqual(dashboard.consoleErrors, []);
  });
});
