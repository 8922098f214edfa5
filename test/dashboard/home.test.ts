// The home page as a control room: numbers, problems with their last error, machines, and first steps that tick
// themselves off.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Page, Request } from 'playwright-core';
import {
  type ScriptedUpstream,
  startScriptedUpstream,
} from '#inference/engines/scripted/server.ts';
import { checkAppearance, describeInBrowser, settle } from '#test/support/browser.ts';
import {
  createApiKey,
  type Dashboard,
  launchMachine,
  openAs,
  openDashboard,
  post,
  sendChat,
  terminateMachines,
} from '#test/support/dashboard.ts';
import { until } from '#test/support/until.ts';

const model = 'llama3.1-8b-instruct';

describeInBrowser('home', () => {
  let dashboard: Dashboard;
  let page: Page;
  let upstream: ScriptedUpstream;
  let key: string;
  let member: Page;
  before(async () => {
    dashboard = await openDashboard();
    ({ page } = dashboard);
    upstream = await startScriptedUpstream();
  });
  after(async () => {
    await terminateMachines(dashboard);
    await upstream.close();
  });

  const steps = () => page.getByRole('region', { name: 'First steps' });
  const attention = () => page.getByRole('region', { name: 'Needs attention' });
  const tile = (name: string) => page.locator('.tile', { hasText: name });

  test('a new server has first steps, and a stand-in that is not taken for a model', async () => {
    await steps().getByText('0 of 6 done.').waitFor();
    await attention().getByText('stand-in, not the real model').waitFor();
    assert.equal(await attention().getByText('stand-in, not the real model').count(), 1);
    await checkAppearance(page, 'home-new');
    await attention().getByRole('link', { name: 'Serve real models' }).click();
    await page.getByRole('heading', { name: 'Models', level: 1 }).waitFor();
    await page.goto(`${dashboard.url}/#/`);
  });

  test('a tab holds one connection for events: a browser has six for all tabs', async () => {
    const opened: string[] = [];
    const onRequest = (request: Request) => {
      if (request.url().endsWith('/dashboard/api/events')) opened.push(request.url());
    };
    page.on('request', onRequest);
    await page.reload();
    await steps().waitFor();
    await settle(page);
    page.off('request', onRequest);
    assert.equal(opened.length, 1);
  });

  test('steps are ticked off wherever they were done', async () => {
    await page.request.post(`${dashboard.url}/v1/chat/completions`, {
      data: { model: 'nonesuch', messages: [{ role: 'user', content: 'Hello' }] },
    });
    await page.reload();
    await steps().getByText('0 of 6 done.').waitFor();
    const data = { model, name: 'one', url: upstream.url, upstream_model: 'scripted' };
    await post(page, `${dashboard.url}/dashboard/api/backends`, data);
    key = await createApiKey(dashboard, 'importer');
    assert.equal((await sendChat(dashboard.url, key, { model })).status, 200);
    await post(page, `${dashboard.url}/v1/chat/completions`, {
      model,
      messages: [{ role: 'user', content: 'Hello' }],
    });
    const launch = await launchMachine(dashboard, 'worker');
    assert.ok(launch.ok(), await launch.text());
    member = await openAs(dashboard, 'member');
    await page.reload();
    // All six are done, so the list is gone.
    await page.getByRole('table', { name: 'Machines' }).waitFor();
    await until('no first steps are left', async () => (await steps().count()) === 0);
  });

  test('numbers are live: they change while the page is open', async () => {
    await tile('Requests per second').getByText('3 in 24 hours · 3 this month').waitFor();
    assert.equal((await sendChat(dashboard.url, key, { model: 'no-such-model' })).status, 404);
    const failed = tile('Failed in 24 hours');
    await failed.getByText('0 in the last minute · 2 refused (4xx)').waitFor();
    await failed.getByText('0 (0%)').waitFor();
    await page.getByRole('img', { name: 'Requests per hour in the last day' }).waitFor();
  });

  test('running machines are listed with their cost per hour', async () => {
    const row = page.getByRole('table', { name: 'Machines' }).getByRole('row', { name: /worker/ });
    await row.getByText('active').waitFor();
    assert.match(await row.innerText(), /\$\d+\.\d\d\/hour/);
    const href = await row.getByRole('link', { name: 'worker' }).getAttribute('href');
    assert.match(href ?? '', /\/machines\/[0-9a-f]{32}$/);
    await page.getByText(/^1 machine, \$\d+\.\d\d\/hour together\.$/).waitFor();
  });

  test('a backend that fails is at the top with its last error', async () => {
    await upstream.close();
    await sendChat(dashboard.url, key, { model });
    const row = attention().getByRole('listitem').first();
    await row.getByText(`Backend one of ${model}`).waitFor();
    const refused = new RegExp(`${upstream.url}: .*The backend is not listening\\.`);
    await until('the error is shown', async () => refused.test(await row.innerText()));
    await checkAppearance(page, 'home-used');
    await row.getByRole('link', { name: `Backend one of ${model}` }).click();
    await page.getByRole('heading', { name: model, level: 1 }).waitFor();
  });

  test('spend is shown against the budget of the account', async () => {
    await page.context().request.put(`${dashboard.url}/dashboard/api/limits`, {
      data: { monthly_budget: 0.000001 },
    });
    await page.goto(`${dashboard.url}/#/`);
    await page.reload();
    await tile('Cost this month')
      .getByText(/% of the \$0\.000001 budget for models/)
      .waitFor();
    await tile('Cost this month').getByRole('progressbar', { name: 'Budget used' }).waitFor();
    await attention().getByText('Budget of the account').waitFor();
    assert.equal(await attention().getByRole('link', { name: 'Edit account limits' }).count(), 1);
    await member.reload();
    await member.getByText('Budget of the account').waitFor();
    assert.equal(await member.getByRole('link', { name: 'Edit account limits' }).count(), 0);
  });

  test('a viewer sees the numbers and the problems, but nothing to do', async () => {
    const viewer = await openAs(dashboard, 'viewer');
    await viewer.locator('.tile').first().waitFor();
    await viewer.getByRole('region', { name: 'Needs attention' }).waitFor();
    assert.equal(await viewer.getByRole('region', { name: 'First steps' }).count(), 0);
    assert.equal(await viewer.getByRole('link', { name: 'Serve the real model' }).count(), 0);
  });

  test('the console shows no errors', () => {
    assert.deepEqual(dashboard.consoleErrors, []);
  });
});

describeInBrowser('first steps', () => {
  test('are ticked off one by one, and dismissed for good', async () => {
    const dashboard = await openDashboard();
    const { page } = dashboard;
    const steps = page.getByRole('region', { name: 'First steps' });
    await steps.getByText('0 of 6 done.').waitFor();
    await steps.getByRole('link', { name: /Create an API key/ }).click();
    await page.getByLabel('Label').fill('my program');
    await page.getByRole('button', { name: 'Create API key' }).click();
    await page.getByRole('button', { name: 'I saved the key' }).click();
    await page.goto(`${dashboard.url}/#/`);
    await steps.getByText('1 of 6 done.').waitFor();
    const done = steps.getByRole('listitem').filter({ hasText: '(done)' });
    assert.match(await done.innerText(), /Create an API key/);
    await steps.getByRole('button', { name: 'Dismiss' }).click();
    await steps.waitFor({ state: 'detached' });
    await page.reload();
    await page.locator('.tile').first().waitFor();
    assert.equal(await steps.count(), 0);
  });
});
