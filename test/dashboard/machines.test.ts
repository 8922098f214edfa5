// The life of a machine in the dashboard, from launch to termination, on real sandboxes.

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import {
  checkAppearance,
  describeInBrowser,
  findViolations,
  openPage,
  screenshot,
} from '#test/support/browser.ts';
import { type Dashboard, openDashboard, terminateMachines } from '#test/support/dashboard.ts';
import { startOutageProxy } from '#test/support/outage-proxy.ts';

describeInBrowser('machines', () => {
  let dashboard: Dashboard;
  before(async () => {
    dashboard = await openDashboard({ config: { cloud: { driver: 'sandbox' } } });
  });

  after(() => terminateMachines(dashboard));

  const rowOf = (name: string) => dashboard.page.getByRole('row', { name: new RegExp(name) });

  const types = () => dashboard.page.getByRole('radiogroup', { name: 'Type' }).getByRole('radio');
  const openList = () => dashboard.page.goto(`${dashboard.url}/#/machines`);

  async function launch(name: string, chooseKey: () => Promise<void>) {
    const { page } = dashboard;
    await page.getByRole('link', { name: /^Launch (a )?machine/ }).click();
    await types().first().click();
    await page.getByRole('combobox', { name: 'Image' }).waitFor();
    await page.getByLabel('Machine name').fill(name);
    await chooseKey();
    await page.getByRole('button', { name: 'Launch', exact: true }).click();
    await page.getByRole('heading', { name }).waitFor();
    await openList();
    await rowOf(name).getByText('active', { exact: true }).waitFor();
  }

  test('a machine is launched with a generated key', async () => {
    const { page } = dashboard;
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    await launch('first-machine', async () => {
      assert.ok(await page.getByRole('button', { name: 'Launch', exact: true }).isDisabled());
      await page.getByLabel('Or generate a new key named').fill('my laptop');
      const downloading = page.waitForEvent('download');
      await page.getByRole('button', { name: 'Generate and download' }).click();
      const file = await downloading;
      assert.equal(file.suggestedFilename(), 'my-laptop.pem');
      const pem = (await (await file.createReadStream()).toArray()).join('');
      assert.match(pem, /^-----BEGIN RSA PRIVATE KEY-----\n/);
    });
    const row = await rowOf('first-machine').innerText();
    assert.match(row, /ssh -i ~\/\.ssh\/my-laptop\.pem( -p \d+)? ubuntu@\d+\.\d+\.\d+\.\d+/);
    assert.doesNotMatch(row, /add -i/);
    // A browser saves files with a mode that ssh refuses for private keys.
    await page.getByRole('button', { name: 'Copy the ssh command of first-machine' }).click();
    const copied = await page.evaluate<string>('navigator.clipboard.readText()');
    assert.match(copied, /^chmod 600 ~\/\.ssh\/my-laptop\.pem && ssh -i ~\/\.ssh\/my-laptop\.pem /);
    assert.match(row, /\$\d+\.\d\d\/hour/);
    assert.deepEqual(await findViolations(page), []);
  });

  test('while the server is unreachable no machine is shown as fine', async () => {
    const proxy = await startOutageProxy(dashboard.url);
    const page = await dashboard.page.context().newPage();
    await page.goto(`${proxy.url}#/machines`);
    await page.getByRole('row', { name: /first-machine/ }).waitFor();
    const toColor = () =>
      page.evaluate<string>(
        "getComputedStyle(document.querySelector('.status-dot')).backgroundColor",
      );
    const green = await toColor();
    await proxy.cut('refused');
    await page.getByText('Can’t reach the server').waitFor();
    assert.notEqual(await toColor(), green);
    await proxy.restore();
    await page.getByText('Can’t reach the server').waitFor({ state: 'detached' });
    assert.equal(await toColor(), green);
    await page.close();
    await proxy.close();
  });

  test('the boot log is shown', async () => {
    const { page } = dashboard;
    await page.getByRole('button', { name: 'Actions for first-machine' }).click();
    await page.getByRole('menuitem', { name: 'Boot log' }).click();
    const dialog = page.getByRole('dialog', { name: /Boot log of “first-machine”/ });
    await dialog.locator('pre').waitFor();
    assert.deepEqual(await findViolations(page), []);
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'detached' });
  });

  test('a renamed machine has its new name in the list', async () => {
    const { page } = dashboard;
    await page.getByRole('button', { name: 'Actions for first-machine' }).click();
    await page.getByRole('menuitem', { name: 'Rename' }).click();
    await page.getByLabel('Name', { exact: true }).fill('renamed-machine');
    await page.getByRole('button', { name: 'Rename', exact: true }).click();
    await rowOf('renamed-machine').waitFor();
  });

  test('tags of a running machine are edited', async () => {
    const { page } = dashboard;
    await page.getByRole('button', { name: 'Actions for renamed-machine' }).click();
    await page.getByRole('menuitem', { name: 'Edit tags' }).click();
    const tags = page.getByRole('dialog').getByRole('combobox', { name: 'Tags' });
    await tags.fill('stage=trial');
    await tags.press('Enter');
    await checkAppearance(page, 'machines-tags');
    await page.getByRole('button', { name: 'Save' }).click();
    await rowOf('renamed-machine').getByText('stage=trial').waitFor();
    await page.getByRole('button', { name: 'Actions for renamed-machine' }).click();
    await page.getByRole('menuitem', { name: 'Edit tags' }).click();
    await tags.press('Backspace');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('stage=trial').waitFor({ state: 'detached' });
  });

  test('changes made elsewhere appear without a reload', async () => {
    const { page: other } = await openPage({
      storageState: await dashboard.page.context().storageState(),
    });
    await other.goto(`${dashboard.url}/#/machines`);
    await other.getByRole('button', { name: 'Actions for renamed-machine' }).click();
    await other.getByRole('menuitem', { name: 'Rename' }).click();
    await other.getByLabel('Name', { exact: true }).fill('seen-elsewhere');
    await other.getByRole('button', { name: 'Rename', exact: true }).click();
    await rowOf('seen-elsewhere').waitFor();
    await other.context().close();
  });

  test('a machine that died shows why it is unhealthy', async () => {
    const { page } = dashboard;
    const [id] = readdirSync(join(dashboard.dataDir, 'machines'));
    const file = join(dashboard.dataDir, 'machines', id as string, 'process.json');
    process.kill(JSON.parse(readFileSync(file, 'utf8')).init.pid, 'SIGKILL');
    const row = rowOf('seen-elsewhere');
    await row.getByText('unhealthy', { exact: true }).waitFor();
    await row.getByText('Its processes ended, or this host was restarted.').waitFor();
    assert.equal(await page.getByRole('link', { name: 'Terminal of seen-elsewhere' }).count(), 0);
    await screenshot(page, 'machines-unhealthy');
    assert.deepEqual(await findViolations(page), []);
  });

  test('several are restarted and terminated at once', async () => {
    const { page } = dashboard;
    // The only SSH key is selected already.
    await launch('second-machine', async () => {});
    await screenshot(page, 'machines-list');
    await page.setViewportSize({ width: 360, height: 740 });
    await screenshot(page, 'machines-list-phone');
    await page.setViewportSize({ width: 1280, height: 800 });
    await page.getByRole('button', { name: 'Select all' }).click();
    await page.getByText('2 of 2 selected.').waitFor();
    await page.getByRole('button', { name: 'Restart selected' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Restart' }).click();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'Terminate selected' }).click();
    const dialog = page.getByRole('dialog', { name: 'Terminate 2 machines?' });
    await dialog.getByRole('button', { name: 'Cancel' }).click();
    assert.equal(await page.getByRole('row').count(), 3, 'canceling terminated them');
    await page.getByRole('button', { name: 'Terminate selected' }).click();
    await dialog.getByRole('button', { name: 'Terminate' }).click();
    await page.getByRole('heading', { name: 'No machines yet' }).waitFor();
  });

  test('several are launched at once, numbered and tagged', async () => {
    const { page } = dashboard;
    await page.getByRole('link', { name: 'Launch machine' }).click();
    await types().first().click();
    await page.getByRole('combobox', { name: 'Image' }).waitFor();
    await page.getByLabel('Machine name').fill('pair');
    await page.getByLabel('Count', { exact: true }).fill('2');
    const tags = page.getByRole('combobox', { name: 'Tags' });
    await tags.fill('Bad Tag');
    await tags.press('Enter');
    await page.getByText('“Bad Tag” is not a valid tag key').waitFor();
    assert.ok(await page.getByRole('button', { name: 'Launch', exact: true }).isDisabled());
    await tags.press('Backspace');
    await tags.fill('team=vision');
    await tags.press('Enter');
    await page.getByRole('button', { name: 'Launch', exact: true }).click();
    for (const name of ['pair-1', 'pair-2']) {
      await rowOf(name).getByText('active', { exact: true }).waitFor();
      await rowOf(name).getByText('team=vision').waitFor();
    }
    await checkAppearance(page, 'machines-several');
  });

  test('if some of several launches fail, the page says how many succeeded and why', async () => {
    const { page } = dashboard;
    await page.getByRole('checkbox', { name: 'Select pair-2' }).check();
    await page.getByRole('button', { name: 'Terminate selected' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Terminate' }).click();
    await rowOf('pair-2').waitFor({ state: 'detached' });
    await page.getByRole('link', { name: 'Launch machine' }).click();
    // The largest type with capacity, of which even a large host can't run 32.
    await types().last().click();
    await page.getByRole('combobox', { name: 'Image' }).waitFor();
    await page.getByLabel('Machine name').fill('crowd');
    await page.getByLabel('Count', { exact: true }).fill('32');
    await page.getByRole('button', { name: 'Launch', exact: true }).click();
    const notice = page.getByRole('alert').filter({ hasText: 'of 32 machines' });
    await notice.waitFor();
    const [, launched] = /^(\d+) of 32 machines are starting/.exec(await notice.innerText()) ?? [];
    assert.ok(Number(launched) >= 1, await notice.innerText());
    assert.match(await notice.innerText(), /Request ID/);
    await checkAppearance(page, 'machines-some-refused');
    const left = await page.getByLabel('Count', { exact: true }).inputValue();
    assert.equal(
      Number(left),
      32 - Number(launched),
      'a retry would launch the same machines again',
    );
    await page.getByRole('link', { name: 'Machines', exact: true }).first().click();
    await page.getByRole('button', { name: 'Discard' }).click();
    await rowOf(`crowd-${launched}`).waitFor();
    const crowd = page.getByRole('row').filter({ hasText: /crowd-\d/ });
    assert.equal(await crowd.count(), Number(launched));
  });

  test('the console shows no errors', () => {
    assert.deepEqual(dashboard.consoleErrors, []);
  });
});
