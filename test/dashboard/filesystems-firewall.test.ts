// Filesystems and firewall rules are created, edited and deleted in the dashboard.

import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import type { Page } from 'playwright-core';
import { describeInBrowser, findViolations } from '#test/support/browser.ts';
import { type Dashboard, openDashboard } from '#test/support/dashboard.ts';

describeInBrowser('filesystems and firewall', () => {
  let dashboard: Dashboard;
  let page: Page;
  before(async () => {
    dashboard = await openDashboard();
    ({ page } = dashboard);
  });

  const read = async (path: string) =>
    (await (await page.context().request.get(`${dashboard.url}/api/v1/${path}`)).json()).data;
  const dialog = () => page.getByRole('dialog');

  test('a filesystem is created in the region of the machines, and deleted', async () => {
    await page.getByRole('link', { name: 'Filesystems' }).click();
    await page.getByRole('link', { name: 'Create filesystem' }).click();
    await dialog().getByLabel('Name').fill('datasets');
    await dialog().getByRole('button', { name: 'Create filesystem' }).click();
    const row = page.getByRole('row', { name: /datasets/ });
    await row.waitFor();
    assert.match(await row.innerText(), /us-west-1/);
    assert.deepEqual(await findViolations(page), []);
    await page.getByRole('button', { name: 'Delete datasets' }).click();
    await dialog().getByRole('button', { name: 'Delete' }).click();
    await page.getByRole('heading', { name: 'No filesystems yet' }).waitFor();
    assert.deepEqual(await read('file-systems'), []);
  });

  test('a name that is taken is refused with an explanation', async () => {
    for (const _ of ['first', 'second']) {
      await page.goto(`${dashboard.url}/#/filesystems/new`);
      await dialog().getByLabel('Name').fill('twice');
      await dialog().getByRole('button', { name: 'Create filesystem' }).click();
      await page.getByText(/twice/).first().waitFor();
    }
    await dialog().getByText("A filesystem is called 'twice' already.").waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'Discard' }).click();
  });

  test('the rules for all machines are edited', async () => {
    await page.getByRole('link', { name: 'Firewall' }).click();
    await page.getByRole('button', { name: 'Add rule' }).click();
    const rule = page.getByRole('group', { name: 'Rule 3' });
    await rule.getByLabel('Ports').fill('web');
    await rule.getByLabel('Source').fill('203.0.113.0/24');
    await rule.getByLabel('Description').fill('web');
    await page.getByRole('button', { name: 'Save rules' }).click();
    await page.getByText('“web” is not a valid port').waitFor();
    const inputs = rule.locator('input:visible, button:visible');
    const tops = (await inputs.all()).map(async (one) =>
      Math.round((await one.boundingBox())?.y ?? 0),
    );
    assert.equal(
      new Set(await Promise.all(tops)).size,
      1,
      'the row is aligned, also with an error',
    );
    await rule.getByLabel('Ports').fill('');
    await page.getByRole('button', { name: 'Save rules' }).click();
    await page.getByText(/^Enter a port such as 22, .* or all\.$/).waitFor();
    await rule.getByLabel('Ports').fill('8000-9000');
    await page.getByRole('button', { name: 'Remove rule 2' }).click();
    await page.getByRole('button', { name: 'Save rules' }).click();
    await page.getByText('Rules saved.').waitFor();
    const rules = await read('firewall-rules');
    assert.deepEqual(rules.at(-1), {
      protocol: 'tcp',
      port_range: [8000, 9000],
      source_network: '203.0.113.0/24',
      description: 'web',
    });
    assert.equal(rules.length, 2);
    assert.deepEqual(await findViolations(page), []);
  });

  test('a ruleset is created, edited and deleted', async () => {
    await page.getByRole('link', { name: 'Create ruleset' }).click();
    await dialog().getByLabel('Name').fill('web servers');
    await dialog().getByLabel('Ports').fill('80');
    assert.deepEqual(await findViolations(page), []);
    await dialog().getByRole('button', { name: 'Create ruleset' }).click();
    const row = page.getByRole('row', { name: /web servers/ });
    await row.getByText('tcp 80 from anywhere').waitFor();
    await page.getByRole('button', { name: 'Edit web servers' }).click();
    await dialog().getByLabel('Ports').fill('443');
    await dialog().getByRole('button', { name: 'Save' }).click();
    await row.getByText('tcp 443 from anywhere').waitFor();
    await page.getByRole('button', { name: 'Delete web servers' }).click();
    await dialog().getByRole('button', { name: 'Delete' }).click();
    await page.getByRole('heading', { name: 'No rulesets yet' }).waitFor();
    assert.deepEqual(dashboard.consoleErrors, []);
  });
});
