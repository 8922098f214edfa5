// Weights are pulled from a hub on loopback, serve their model, and are removed again.

import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import type { Page } from 'playwright-core';
import type { WeightsOverview } from '#inference/weights/schema.ts';
import { describeInBrowser, findViolations, screenshot } from '#test/support/browser.ts';
import { type Dashboard, openDashboard, post } from '#test/support/dashboard.ts';
import { testEngine } from '#test/support/deployments.ts';
import { randomGguf } from '#test/support/gguf.ts';
import { startHub, type TestHub } from '#test/support/hub.ts';
import { until } from '#test/support/until.ts';

const model = 'llama3.2-3b-instruct';
const repo = 'bartowski/Llama-3.2-3B-Instruct-GGUF';
const file = 'Llama-3.2-3B-Instruct-Q4_K_M.gguf';

describeInBrowser('models', () => {
  let hub: TestHub;
  let dashboard: Dashboard;
  let page: Page;
  before(async () => {
    hub = await startHub();
    hub.add(repo, { [file]: randomGguf(400_000) });
    dashboard = await openDashboard({ config: { models: { hub_url: hub.url } } });
    ({ page } = dashboard);
    await page.getByRole('link', { name: 'Models', exact: true }).click();
  });

  const row = () => page.getByRole('row', { name: new RegExp(`^${model}`) });
  const bar = () => page.getByRole('progressbar', { name: `Download of ${file}` });

  async function openDialog() {
    await page.getByRole('button', { name: `Serve the real model of ${model}` }).click();
    await page.getByRole('menuitem', { name: 'Pull weights' }).click();
  }

  async function pull() {
    await openDialog();
    await page.getByRole('dialog').getByRole('button', { name: 'Pull weights' }).click();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
  }

  test('a model without weights is answered by the stand-in', async () => {
    await row().getByText('stand-in, not the real model').waitFor();
  });

  test('a download shows its progress and can be canceled', async () => {
    hub.pauseAfter(100_000);
    await pull();
    await page.getByText('100.0 kB of 400.0 kB (25%)').waitFor();
    assert.equal(await bar().getAttribute('aria-valuenow'), '25');
    await screenshot(page, 'models-pulling');
    assert.deepEqual(await findViolations(page), []);
    await page.getByRole('button', { name: `Cancel download of ${file}` }).click();
    await bar().waitFor({ state: 'detached' });
    hub.release();
  });

  test('downloaded weights serve their model until they are removed', async () => {
    await pull();
    await row().getByText(file).waitFor();
    const stored = page.getByRole('table', { name: 'Weights on disk' });
    assert.match(await stored.getByRole('row', { name: /Q4_K_M/ }).innerText(), /400\.0 kB/);
    await screenshot(page, 'models-pulled');
    assert.deepEqual(await findViolations(page), []);
    await page.getByRole('button', { name: `Remove ${file}` }).click();
    await page.getByText(`Requests for ${model} get an error (503) unless`).waitFor();
    await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click();
    await row().getByText('No backend. Requests get an error (503).').waitFor();
  });

  test('weights of a deployment are listed with it, and stay while it needs them', async () => {
    const files = { 'config.json': Buffer.from('{}'), 'model.safetensors': Buffer.alloc(5_000) };
    hub.add('acme/small', files);
    const settings = { ...testEngine, source: 'acme/small', min: 1 };
    await post(page, `${dashboard.url}/api/v1/deployments`, { name: 'tiny', ...settings });
    const deployed = await until('it is fetched', async () => {
      const response = await page.request.get(`${dashboard.url}/dashboard/api/weights`);
      const { data } = (await response.json()) as WeightsOverview;
      return data.find(({ repo, state }) => repo === 'acme/small' && state === 'whole');
    });
    assert.deepEqual(deployed.deployments, ['tiny']);
    await page.reload();
    const stored = page.getByRole('table', { name: 'Weights on disk' });
    const shown = await stored.getByRole('row', { name: /acme\/small/ }).innerText();
    assert.match(shown, /^small\s+acme\/small\s+5\.00 kB\s+deployment tiny\s+in use$/);
  });

  test('a repository that does not exist is refused with an explanation', async () => {
    await openDialog();
    await page.getByLabel('Repository').fill('nobody/nothing');
    await page.getByRole('dialog').getByRole('button', { name: 'Pull weights' }).click();
    const notice = await page.getByRole('dialog').getByRole('alert').innerText();
    assert.match(notice, /nobody\/nothing/);
    assert.match(notice, /Request ID [0-9a-f]{32}/);
    assert.deepEqual(dashboard.consoleErrors, []);
  });
});
