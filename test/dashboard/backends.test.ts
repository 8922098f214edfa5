// An owner adds, watches, drains and removes backends. The backend is a second real server.

import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import type { Page } from 'playwright-core';
import { checkAppearance, describeInBrowser } from '#test/support/browser.ts';
import {
  createApiKey,
  type Dashboard,
  openAs,
  openDashboard,
  sendChat,
} from '#test/support/dashboard.ts';
import { until } from '#test/support/until.ts';

const model = 'llama3.1-8b-instruct';
const smaller = 'llama3.2-3b-instruct';

describeInBrowser('backends', () => {
  let dashboard: Dashboard;
  let upstream: Dashboard;
  let page: Page;
  let key: string;
  let upstreamKey: string;
  before(async () => {
    [dashboard, upstream] = await Promise.all([openDashboard(), openDashboard()]);
    ({ page } = dashboard);
    upstreamKey = await createApiKey(upstream, 'for the first server');
    key = await createApiKey(dashboard, 'program');
  });

  const row = () => page.getByRole('row', { name: new RegExp(`^${model}`) });
  const servedBy = async () =>
    (await sendChat(dashboard.url, key, { model, stream: true })).headers.get('x-served-by');

  test('every model shows its backends, and the stand-in if it has none', async () => {
    await page.getByRole('link', { name: 'Models', exact: true }).click();
    await row().getByText('stand-in, not the real model').waitFor();
    assert.equal(await row().getByText('healthy').count(), 0);
    await row().getByText('free while the stand-in answers').waitFor();
    const rows = page.getByRole('table', { name: 'Models' }).getByRole('row');
    const { data } = await (await page.context().request.get(`${dashboard.url}/v1/models`)).json();
    // The page also lists the model for long prompts, which the API does not.
    assert.ok((await rows.count()) > data.length);
    assert.equal(
      await rows.getByText('stand-in, not the real model').count(),
      (await rows.count()) - 1,
    );
  });

  test('a check finds a wrong URL before anything is added', async () => {
    await page.getByRole('button', { name: `Serve the real model of ${model}` }).click();
    await page.getByRole('menuitem', { name: 'Add backend' }).click();
    const dialog = page.getByRole('dialog', { name: 'Add backend' });
    await dialog.getByLabel('Name', { exact: true }).fill('second-server');
    await dialog.getByLabel('Base URL').fill('http://127.0.0.1:9/v1');
    await dialog.getByRole('button', { name: 'Check backend' }).click();
    await dialog.getByText('check failed').waitFor();
    await dialog.getByRole('button', { name: 'Add backend', exact: true }).click();
    await dialog.getByText('The backend was not added').waitFor();
  });

  test('a server that responds is checked and added', async () => {
    const dialog = page.getByRole('dialog', { name: 'Add backend' });
    await dialog.getByLabel('Base URL').fill(`${upstream.url}/v1`);
    await dialog.getByLabel('API key', { exact: true }).fill(upstreamKey);
    await dialog.getByLabel('Upstream model name').fill(smaller);
    await dialog.getByText('Advanced: headers, timeouts').click();
    await dialog.getByLabel('Headers').fill('x-team: vision\nnot a header: at all');
    await dialog.getByLabel('First byte timeout (s)').fill('90');
    await dialog.getByRole('combobox', { name: /interrupted responses/ }).click();
    await page.getByRole('option', { name: 'Yes' }).click();
    await dialog.getByRole('button', { name: 'Check backend' }).click();
    await dialog.getByText(/“not a header”/).waitFor();
    await dialog.getByLabel('Headers').fill('x-team: vision');
    await dialog.getByRole('button', { name: 'Check backend' }).click();
    await dialog.getByText(/passed in \d+ ms/).waitFor();
    const posted = page.waitForRequest(
      (request) => request.method() === 'POST' && request.url().endsWith('/api/backends'),
    );
    await checkAppearance(page, 'models-add-backend');
    await dialog.getByRole('button', { name: 'Add backend', exact: true }).click();
    const { headers, timeouts, continue_streams } = (await posted).postDataJSON();
    assert.deepEqual(headers, { 'x-team': 'vision' });
    assert.deepEqual([timeouts, continue_streams], [{ first_byte_ms: 90_000 }, true]);
    await dialog.waitFor({ state: 'detached' });
    await row().getByText('second-server').waitFor();
  });

  test('requests go to the new backend, and the page shows its speed', async () => {
    await until('the backend serves requests', async () => (await servedBy()) === 'second-server');
    await row()
      .getByText(/[\d.]+ (ms|s) to first token/)
      .first()
      .waitFor();
    await row()
      .getByText(/0\.\d+ requests\/s/)
      .first()
      .waitFor();
    await checkAppearance(page, 'models-backends');
  });

  test('a drained backend gets no more requests until it is resumed', async () => {
    const { request } = page.context();
    const backends = `${dashboard.url}/dashboard/api/backends`;
    const added = await request.post(backends, {
      data: { model, name: 'third-server', url: `${upstream.url}/v1`, api_key: upstreamKey },
    });
    assert.ok(added.ok(), await added.text());
    await row().getByText('third-server').waitFor();
    const menu = page.getByRole('button', { name: `Actions for ${model}/second-server` });
    await menu.click();
    await page.getByRole('menuitem', { name: 'Drain' }).click();
    await row().getByText('draining').waitFor();
    for (let at = 0; at < 3; at++) assert.equal(await servedBy(), 'third-server');
    await menu.click();
    await page.getByRole('menuitem', { name: 'Resume' }).click();
    await row().getByText('draining').waitFor({ state: 'detached' });
    const gone = await request.delete(`${backends}/${model}/third-server`);
    assert.ok(gone.ok(), await gone.text());
    await until('it serves requests again', async () => (await servedBy()) === 'second-server');
  });

  test('a member sees backends and learns that only owners can add them', async () => {
    const member = await openAs(dashboard, 'member');
    await member.goto(`${dashboard.url}/#/models/add-backend`);
    await member.getByText('second-server').waitFor();
    assert.equal(await member.getByRole('dialog').count(), 0);
    const menus = member.getByRole('button', { name: /second-server/ });
    assert.equal(await menus.count(), 0);
    await member.getByRole('button', { name: `Add to ${model}` }).click();
    await member.getByRole('menuitem', { name: /Only owners can add backends/ }).waitFor();
    const path = `${dashboard.url}/dashboard/api/backends/${model}/second-server`;
    const refused = await member.context().request.patch(path, { data: { draining: true } });
    assert.equal(refused.status(), 403);
  });

  test('without its backends a model answers 503, until an owner lets the stand-in answer', async () => {
    await page.getByRole('button', { name: `Actions for ${model}/second-server` }).click();
    await page.getByRole('menuitem', { name: 'Remove' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click();
    await row().getByText('second-server').waitFor({ state: 'detached' });
    await row().getByText('No backend. Requests get an error (503).').waitFor();
    assert.equal(await servedBy(), null);
    await row().getByRole('link', { name: model }).click();
    await page.getByRole('button', { name: 'Let the stand-in answer' }).click();
    await page.getByText('stand-in, not the real model').waitFor();
    assert.equal(await servedBy(), 'builtin');
  });

  test('the console shows no errors', () => {
    assert.deepEqual(dashboard.consoleErrors, []);
  });
});
