// Deployments in the dashboard: an owner deploys a model, changes it, stops it and removes it, and others only look.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { Page } from 'playwright-core';
import type { DeploymentView } from '#deployments/ground/schema.ts';
import { checkAppearance, describeInBrowser } from '#test/support/browser.ts';
import {
  createApiKey,
  type Dashboard,
  openAs,
  openDashboard,
  post,
  sendChat,
} from '#test/support/dashboard.ts';
import { type NvidiaSmi, useNvidiaSmi } from '#test/support/nvidia-smi.ts';
import { until } from '#test/support/until.ts';

const engine = join(import.meta.dirname, '../support/deployed-engine.ts');
const model = 'hermes3-8b';
const name = 'hermes';

describeInBrowser('deployments', () => {
  let dashboard: Dashboard;
  let page: Page;
  let nvidiaSmi: NvidiaSmi;
  before(async () => {
    nvidiaSmi = useNvidiaSmi({});
    dashboard = await openDashboard({ config: { cloud: { driver: 'sandbox' } } });
    ({ page } = dashboard);
  });

  after(() => nvidiaSmi.remove());

  const dialog = () => page.getByRole('dialog');
  const button = (label: string) => page.getByRole('button', { name: label, exact: true });
  const row = () => page.getByRole('row', { name: new RegExp(`^${name}`) });
  const main = () => page.getByRole('main');
  const open = (path: string) => page.goto(`${dashboard.url}/#/${path}`);
  const read = async (of: string): Promise<DeploymentView> => {
    const response = await page.context().request.get(`${dashboard.url}/api/v1/deployments/${of}`);
    return (await response.json()).data;
  };

  const openAdvanced = () => dialog().getByText('Advanced: arguments, environment').click();

  async function fillIn(): Promise<void> {
    await dialog().getByRole('combobox', { name: 'Model' }).click();
    await page.getByRole('option', { name: model, exact: true }).click();
    const engines = dialog().getByRole('combobox', { name: 'Engine' });
    // vLLM is not installed here.
    assert.equal(await engines.inputValue(), 'Built-in engine');
    await engines.click();
    await page.getByRole('option', { name: 'vLLM' }).click();
    await dialog()
      .getByText(/: needs [\d.]+ GiB, has [\d.]+ GiB$/)
      .waitFor();
    const field = dialog().getByRole('textbox', { name: 'Name' });
    assert.equal(await field.inputValue(), model, 'the name follows from the model');
    await field.fill(name);
    await dialog().getByRole('combobox', { name: 'Engine' }).click();
    await page.getByRole('option', { name: 'Other program' }).click();
    await dialog().getByLabel('Program').fill(process.execPath);
    await openAdvanced();
    await dialog().getByLabel('Arguments').fill(engine);
    await dialog().getByLabel('Environment').fill('VERSION=old');
  }

  test('an empty list has a command to copy', async () => {
    await page.keyboard.press('g');
    await page.keyboard.press('d');
    await page.getByRole('heading', { name: 'No deployments yet' }).waitFor();
    await page.getByText(/millrace deploy llama3\.1-8b-instruct --engine vllm/).waitFor();
    const crumbs = page.getByRole('navigation', { name: 'Breadcrumbs' });
    assert.match(await crumbs.innerText(), /Build\s+Deployments/);
  });

  test('a model is deployed once its fields are right', async () => {
    await page.getByRole('link', { name: 'Deploy model' }).click();
    await fillIn();
    await checkAppearance(page, 'deployments-new');
    await dialog().getByLabel('Minimum replicas').fill('2');
    await button('Deploy').click();
    await dialog().getByText('Use at most 1, the maximum.').waitFor();
    await dialog().getByLabel('Minimum replicas').fill('0');
    await dialog().getByLabel('Environment').fill('VERSION=old\nSECRET');
    await button('Deploy').click();
    await dialog().getByText('Line 2 is not NAME=value.').waitFor();
    await dialog().getByLabel('Environment').fill('VERSION=old');
    await dialog().getByLabel('Remove after').fill('0');
    await openAdvanced();
    await dialog().getByLabel('Remove after').waitFor({ state: 'hidden' });
    await button('Deploy').click();
    await dialog().getByLabel('Remove after').fill('600');
    await button('Deploy').click();
    await page.getByRole('heading', { name, level: 1 }).waitFor();
    await main().getByText('starts with the next request').waitFor();
    const { id: _, created_at: __, name: ___, ...deployed } = await read(name);
    const settings = { model, engine: 'command', program: process.execPath, args: [engine] };
    const byDefault = { ...settings, name: 'default', env: { VERSION: 'old' } };
    await post(page, `${dashboard.url}/api/v1/deployments`, byDefault);
    const { id: _1, created_at: _2, name: _3, ...expected } = await read('default');
    assert.deepEqual(deployed, expected);
    await page.context().request.delete(`${dashboard.url}/api/v1/deployments/default`);
  });

  test('a deployment on machines is a choice in the form, and shown with its type', async () => {
    await open('deployments/-/new');
    await fillIn();
    await dialog().getByRole('textbox', { name: 'Name' }).fill('elsewhere');
    await dialog().getByRole('combobox', { name: 'Engine' }).click();
    await page.getByRole('option', { name: 'Built-in engine' }).click();
    await dialog().getByLabel('Source').fill('');
    await dialog().getByLabel('Arguments').fill('');
    await dialog().getByRole('combobox', { name: 'Runs on' }).click();
    await page.getByRole('option', { name: /^cpu_1x_general/ }).click();
    await dialog().getByLabel('Set-up script').fill('echo ready');
    await dialog().getByLabel('Minimum replicas').fill('1');
    await checkAppearance(page, 'deployments-machines');
    await button('Deploy').click();
    await page.getByRole('heading', { name: 'elsewhere', level: 1 }).waitFor();
    await main().getByText('cpu_1x_general').waitFor();
    const { runs_on, setup, image } = await read('elsewhere');
    assert.deepEqual([runs_on, setup, image], ['cpu_1x_general', 'echo ready', null]);
    const replicas = page.getByRole('table', { name: 'Replicas' });
    await replicas.getByText('ready', { exact: true }).waitFor();
    await replicas.getByRole('link').click();
    await main().getByText('Runs the engine of elsewhere').waitFor();
    assert.equal(await page.getByRole('tab', { name: 'Terminal' }).count(), 0);
    await checkAppearance(page, 'deployments-machine');
    await main().getByRole('link', { name: 'elsewhere' }).click();
    await page.getByRole('heading', { name: 'elsewhere', level: 1 }).waitFor();
    await page.context().request.delete(`${dashboard.url}/api/v1/deployments/elsewhere`);
  });

  test('a model’s page says where it fits, and deploys it by an engine that is installed here', async () => {
    const [other, derived] = ['llama3.1-8b-instruct', 'llama3-1-8b-instruct'];
    await open(`models/${other}`);
    await main()
      .getByText(/: needs [\d.]+ GiB, has [\d.]+ GiB$/)
      .waitFor();
    await main().getByRole('link', { name: 'Deploy', exact: true }).click();
    const engines = dialog().getByRole('combobox', { name: 'Engine' });
    await until('the source is suggested', async () =>
      /-GGUF$/.test(await dialog().getByLabel('Source').inputValue()),
    );
    assert.equal(await engines.inputValue(), 'Built-in engine');
    await engines.click();
    await page.getByRole('option', { name: 'vLLM' }).click();
    await dialog()
      .getByText(/^Weights .+ GiB\. (Also fits|No machine here has enough)/)
      .waitFor();
    assert.equal(await dialog().getByLabel('Model').first().inputValue(), other);
    await openAdvanced();
    await dialog().getByLabel('Check memory').uncheck();
    await button('Deploy').click();
    await dialog().getByText('Its program was not found.').waitFor();
    await dialog().getByLabel('Program').fill(process.execPath);
    await button('Deploy').click();
    await page.getByRole('heading', { name: derived, level: 1 }).waitFor();
    assert.equal((await read(derived)).engine, 'vllm');
    await page.context().request.delete(`${dashboard.url}/api/v1/deployments/${derived}`);
  });

  test('a name that is taken is refused at its field', async () => {
    // The address that people type. It leads to the dialog, because no deployment has this name.
    await open('deployments/new');
    await fillIn();
    await button('Deploy').click();
    const field = dialog().getByRole('textbox', { name: 'Name', description: /called hermes/ });
    await field.waitFor();
    assert.equal(await field.getAttribute('aria-invalid'), 'true');
    await page.keyboard.press('Escape');
    await button('Discard').click();
  });

  test('a request starts a replica, which the list and the page show', async () => {
    await row().getByText('idle', { exact: true }).waitFor();
    const key = await createApiKey(dashboard, 'deployments');
    assert.equal((await sendChat(dashboard.url, key, { model })).status, 200);
    await row().getByText('ready', { exact: true }).waitFor();
    await row().getByText('1 of 1').waitFor();
    await checkAppearance(page, 'deployments');
    await row().getByRole('link', { name }).click();
    const replicas = page.getByRole('table', { name: 'Replicas' });
    await replicas.getByText('ready', { exact: true }).waitFor();
    await page.getByText('loading version old').waitFor();
    await page.getByText('Tokens served').waitFor();
    await page.getByText('Time to first token').waitFor();
    assert.doesNotMatch(await main().innerText(), /VERSION=/);
    await replicas.getByText(/^[\d.]+( MiB)? of [\d.]+ GiB$/).waitFor();
    assert.equal(await replicas.getByRole('columnheader', { name: 'GPU' }).count(), 0);
    await checkAppearance(page, 'deployment');
  });

  test('the GPUs that a replica uses are shown with their load and memory', async () => {
    const address = `${dashboard.url}/api/v1/deployments/${name}/log`;
    const { data } = await (await page.context().request.get(address)).json();
    const [, pid] = /^process (\d+)$/m.exec(data.lines.join('\n')) ?? [];
    nvidiaSmi.print({
      gpus: ['GPU-a, NVIDIA H200, 97, 43601, 143771', 'GPU-b, NVIDIA H200, 0, 4, 143771'],
      processes: [`GPU-a, ${pid}, 43000`],
    });
    const replicas = page.getByRole('table', { name: 'Replicas' });
    await replicas.getByText('97% busy, 42.6 of 140.4 GiB').waitFor();
    assert.equal(await replicas.getByText('NVIDIA H200').count(), 1);
    await checkAppearance(page, 'deployment-gpu');
    nvidiaSmi.print({});
  });

  test('a change is rolled back, and a failure shows its reason', async () => {
    await button('Edit').click();
    await dialog()
      .getByText(/Set: VERSION\. Leave this empty/)
      .waitFor();
    await dialog().getByLabel('Environment').fill('FAIL=CUDA out of memory');
    await dialog().getByLabel('Minimum replicas').fill('1');
    await button('Save').click();
    await dialog().waitFor({ state: 'detached' });
    await main()
      .getByText(/too little memory/)
      .waitFor();
    await button('Stop').click();
    await main().getByText('stopped', { exact: true }).waitFor();
    await button('Start').click();
    await main().getByText('failed', { exact: true }).waitFor();
    await checkAppearance(page, 'deployment-failed');
    await button('Try again').click();
    await open('');
    await main()
      .getByRole('link', { name: `Deployment ${name}` })
      .waitFor();
    await open(`models/${model}`);
    await main().getByText('unavailable').waitFor();
    await main()
      .getByText(/The deployment .+ failed\. .+too little memory/)
      .waitFor();
    await main()
      .getByRole('link', { name: `Deployment ${name}` })
      .click();
    await button('Roll back').click();
    await main().getByText('idle', { exact: true }).waitFor();
    assert.deepEqual((await read(name)).env, ['VERSION']);
  });

  test('a viewer sees deployments, but neither buttons nor the log', async () => {
    const viewer = await openAs(dashboard, 'viewer');
    await viewer.goto(`${dashboard.url}/#/deployments/${name}`);
    await viewer.getByRole('heading', { name: 'Replicas' }).waitFor();
    const content = viewer.getByRole('main');
    assert.equal(await content.getByRole('button').count(), 0);
    assert.equal(await content.getByRole('heading', { name: 'Engine log' }).count(), 0);
  });

  test('a deployment is found in the palette, and removed after a question', async () => {
    await open('');
    await page.getByRole('heading', { name: 'Home', level: 1 }).waitFor();
    await page.keyboard.press('Control+k');
    await page.getByRole('dialog', { name: 'Search and commands' }).waitFor();
    await page.keyboard.type(name);
    await dialog().getByText(`idle · ${model}`).click();
    await button('Remove').click();
    await dialog().getByRole('button', { name: 'Remove' }).click();
    await page.getByRole('heading', { name: 'No deployments yet' }).waitFor();
    assert.deepEqual(dashboard.consoleErrors, []);
  });
});
