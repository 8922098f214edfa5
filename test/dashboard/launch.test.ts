// The launch page on a real server: filters, reasons, templates, errors at their fields, and commands that launch exactly
// what the page would.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import type { Page } from 'playwright-core';
import type { Instance } from '#cloud/schema.ts';
import { checkAppearance, describeInBrowser, noBrowser, settle } from '#test/support/browser.ts';
import {
  createApiKey,
  type Dashboard,
  openDashboard,
  post,
  terminateMachines,
} from '#test/support/dashboard.ts';
import { needs } from '#test/support/programs.ts';
import { until } from '#test/support/until.ts';

const execute = promisify(execFile);
const userData = "#!/bin/sh\necho 'it''s \"$HOME\"'\nEOF\n";

describeInBrowser(
  'the launch page',
  () => {
    let dashboard: Dashboard;
    let page: Page;
    let key: string;
    before(async () => {
      dashboard = await openDashboard(
        { config: { cloud: { driver: 'sandbox' } } },
        { viewport: { width: 1280, height: 900 } },
      );
      ({ page } = dashboard);
      key = await createApiKey(dashboard, 'launcher');
      for (const name of ['first key', 'laptop']) {
        await post(page, `${dashboard.url}/api/v1/ssh-keys`, { name });
      }
      await page.goto(`${dashboard.url}/#/machines/new`);
      await page.reload();
    });
    after(() => terminateMachines(dashboard));

    const types = () => page.getByRole('radiogroup', { name: 'Type' }).getByRole('radio');
    const launchButton = () => page.getByRole('button', { name: 'Launch', exact: true });

    test('a type that can’t be launched is shown on request, with the reason', async () => {
      await types().first().waitFor();
      const available = await types().count();
      await page.getByLabel('Available now').uncheck();
      await page.getByText('No host has this GPU.').first().waitFor();
      assert.ok((await types().count()) > available);
      await checkAppearance(page, 'launch-all-types');
      await page.getByRole('radiogroup', { name: 'Kind of machine' }).getByText('CPU').click();
      await page.getByRole('region', { name: /^H100/ }).first().waitFor({ state: 'detached' });
      await page.getByLabel('Up to $ per hour').fill('0.01');
      await page.getByText('No type matches these filters.').waitFor();
      await page.getByLabel('Up to $ per hour').fill('');
      await page.getByLabel('Available now').check();
    });

    test('the copied CLI and curl commands launch what the page would', async () => {
      await types().first().click();
      await page.getByRole('combobox', { name: 'Image' }).waitFor();
      await page.getByRole('combobox', { name: 'SSH key' }).click();
      await page.getByRole('option', { name: 'laptop' }).click();
      await page.getByLabel('Machine name').fill("it's a copy");
      const tags = page.getByRole('combobox', { name: 'Tags' });
      await tags.fill('team=vision');
      await tags.press('Enter');
      await page.getByRole('textbox', { name: 'User data' }).fill(userData);
      await settle(page);
      await checkAppearance(page, 'launch-filled');
      const commands: Record<string, string> = {};
      for (const format of ['CLI', 'curl', 'Terraform']) {
        await page.getByRole('tab', { name: format }).click();
        commands[format] = (await page.locator('aside pre').textContent()) ?? '';
      }
      assert.match(commands.Terraform ?? '', /lambdalabs_instance.*region_name = "us-west-1"/s);
      assert.match(commands.Terraform ?? '', /^ {2}file_system_names = \[\]$/m);
      assert.match(
        commands.Terraform ?? '',
        /source += "elct9620\/lambdalabs"\s+version = "~> 0\.8"/,
      );
      const environment = {
        ...process.env,
        MILLRACE_URL: dashboard.url,
        MILLRACE_API_KEY: key,
        PATH: `${process.cwd()}:${process.env.PATH}`,
      };
      for (const format of ['CLI', 'curl']) {
        const run = `cd ${process.cwd()}\n${commands[format]}`;
        const { stdout } = await execute('bash', ['-ec', run], { env: environment });
        const id = /[0-9a-f]{32}/.exec(stdout)?.[0];
        const made = await (
          await page.context().request.get(`${dashboard.url}/api/v1/instances/${id}`)
        ).json();
        const instance = made.data as Instance;
        assert.equal(instance.name, "it's a copy", format);
        assert.deepEqual(instance.tags, [{ key: 'team', value: 'vision' }], format);
        assert.deepEqual(instance.ssh_key_names, ['laptop'], format);
        await until('its user data ran', async () => {
          const log = await page
            .context()
            .request.get(`${dashboard.url}/dashboard/api/instances/${id}/boot-log`);
          return /its "\$HOME"/.test((await log.json()).data);
        });
      }
    });

    test('a template brings the choice back, and is deleted', async () => {
      await page.getByRole('button', { name: 'Save as template' }).click();
      await page.getByLabel('Template name').fill('vision box');
      await page.keyboard.press('Enter');
      await page.getByLabel('Machine name').fill('other');
      await page.getByRole('button', { name: 'vision box', exact: true }).click();
      assert.equal(await page.getByLabel('Machine name').inputValue(), "it's a copy");
      await page.getByRole('button', { name: 'Delete template vision box' }).click();
      assert.equal(await page.getByRole('button', { name: 'vision box' }).count(), 0);
    });

    test('what the API refuses is said at the field, in words', async () => {
      await post(page, `${dashboard.url}/api/v1/ssh-keys`, { name: 'short-lived' });
      await page.getByLabel('Machine name').fill('refused');
      await page.route('**/instance-operations/launch', async (route) => {
        const body = { ...route.request().postDataJSON(), name: 'x'.repeat(65) };
        await route.continue({ postData: JSON.stringify(body) });
      });
      await launchButton().click();
      await page.getByText('Use at most 64 characters.').waitFor();
      assert.equal(await page.getByText('Error in request body').count(), 0);
      await checkAppearance(page, 'launch-field-error');
      await page.unroute('**/instance-operations/launch');
    });

    test('a launch opens the machine’s page, and its key is selected the next time', async () => {
      // A small host has no room for a third machine.
      await terminateMachines(dashboard);
      await page.getByLabel('Machine name').fill('launched');
      await launchButton().click();
      await page.getByRole('heading', { name: 'launched' }).waitFor();
      await page.goto(`${dashboard.url}/#/machines/new`);
      const select = page.getByRole('combobox', { name: 'SSH key' });
      await until('the last key is selected', async () => (await select.inputValue()) === 'laptop');
    });

    test('the console shows no errors', () => {
      assert.deepEqual(dashboard.consoleErrors, []);
    });
  },
  { skip: noBrowser || needs('curl') },
);
