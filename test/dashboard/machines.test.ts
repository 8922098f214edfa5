// A machine from its launch to its end, as a person sees it, on real sandboxes.

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import {
  endMachines,
  findViolations,
  joinBy,
  look,
  noBrowser,
  openPage,
  picture,
  type Served,
  serve,
  type Watched,
} from '#test/support/browser.ts';

describe('machines', { skip: noBrowser }, () => {
  let served: Served;
  let watched: Watched;
  before(async () => {
    served = await serve();
    watched = await openPage({ reducedMotion: 'reduce' });
    await joinBy(watched.page, served.setupLink, 'owner@example.com');
  });

  after(() => endMachines(watched.page, served.url));

  const rowOf = (name: string) => watched.page.getByRole('row', { name: new RegExp(name) });

  async function launch(name: string, chooseKey: () => Promise<void>) {
    const { page } = watched;
    await page.getByRole('link', { name: 'Launch a machine' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('radio').first().click();
    await dialog.getByRole('button', { name: 'Next' }).click();
    await dialog.getByRole('combobox', { name: 'Image' }).waitFor();
    await picture(page, 'machines-launch-place');
    assert.deepEqual(await findViolations(page), []);
    await dialog.getByRole('button', { name: 'Next' }).click();
    await dialog.getByLabel('Name of the machine').fill(name);
    assert.ok(await dialog.getByRole('button', { name: 'Launch' }).isDisabled());
    await chooseKey();
    await picture(page, 'machines-launch-key');
    assert.deepEqual(await findViolations(page), []);
    await dialog.getByRole('button', { name: 'Launch' }).click();
    await rowOf(name).getByText('active', { exact: true }).waitFor();
  }

  test('three steps launch one, and its key is downloaded on the way', async () => {
    const { page } = watched;
    await launch('first-machine', async () => {
      await page.getByLabel('Or make a new key called').fill('my laptop');
      const downloading = page.waitForEvent('download');
      await page.getByRole('button', { name: 'Make and download' }).click();
      const file = await downloading;
      assert.equal(file.suggestedFilename(), 'my-laptop.pem');
      const pem = (await (await file.createReadStream()).toArray()).join('');
      assert.match(pem, /^-----BEGIN RSA PRIVATE KEY-----\n/);
    });
    const row = await rowOf('first-machine').innerText();
    assert.match(row, /ssh -i my-laptop\.pem( -p \d+)? ubuntu@\d+\.\d+\.\d+\.\d+/);
    assert.doesNotMatch(row, /Add -i/);
    assert.match(row, /\$\d+\.\d\d\/hour/);
    assert.deepEqual(await findViolations(page), []);
  });

  test('the boot log is shown', async () => {
    const { page } = watched;
    await page.getByRole('button', { name: 'More for first-machine' }).click();
    await page.getByRole('menuitem', { name: 'Boot log' }).click();
    const dialog = page.getByRole('dialog', { name: /Boot log of “first-machine”/ });
    await dialog.locator('pre').waitFor();
    assert.deepEqual(await findViolations(page), []);
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'detached' });
  });

  test('a renamed machine has its new name in the list', async () => {
    const { page } = watched;
    await page.getByRole('button', { name: 'More for first-machine' }).click();
    await page.getByRole('menuitem', { name: 'Rename' }).click();
    await page.getByLabel('Name', { exact: true }).fill('renamed-machine');
    await page.getByRole('button', { name: 'Rename', exact: true }).click();
    await rowOf('renamed-machine').waitFor();
  });

  test('tags of a machine that runs are changed', async () => {
    const { page } = watched;
    await page.getByRole('button', { name: 'More for renamed-machine' }).click();
    await page.getByRole('menuitem', { name: 'Change tags' }).click();
    const tags = page.getByRole('dialog').getByRole('combobox', { name: 'Tags' });
    await tags.fill('stage=trial');
    await tags.press('Enter');
    await look(page, 'machines-tags');
    await page.getByRole('button', { name: 'Save' }).click();
    await rowOf('renamed-machine').getByText('stage=trial').waitFor();
    await page.getByRole('button', { name: 'More for renamed-machine' }).click();
    await page.getByRole('menuitem', { name: 'Change tags' }).click();
    await tags.press('Backspace');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('stage=trial').waitFor({ state: 'detached' });
  });

  test('what is done elsewhere is seen without asking again', async () => {
    const { page: other } = await openPage({
      storageState: await watched.page.context().storageState(),
    });
    await other.goto(`${served.url}/#/machines`);
    await other.getByRole('button', { name: 'More for renamed-machine' }).click();
    await other.getByRole('menuitem', { name: 'Rename' }).click();
    await other.getByLabel('Name', { exact: true }).fill('seen-elsewhere');
    await other.getByRole('button', { name: 'Rename', exact: true }).click();
    await rowOf('seen-elsewhere').waitFor();
    await other.context().close();
  });

  test('a machine that died says why it is not well', async () => {
    const { page } = watched;
    const [id] = readdirSync(join(served.dataDir, 'machines'));
    const file = join(served.dataDir, 'machines', id as string, 'process.json');
    process.kill(JSON.parse(readFileSync(file, 'utf8')).init.pid, 'SIGKILL');
    const row = rowOf('seen-elsewhere');
    await row.getByText('unhealthy', { exact: true }).waitFor();
    await row.getByText('Its processes ended, or this host was restarted.').waitFor();
    assert.equal(await page.getByRole('link', { name: 'Terminal of seen-elsewhere' }).count(), 0);
    await picture(page, 'machines-unhealthy');
    assert.deepEqual(await findViolations(page), []);
  });

  test('several are restarted and terminated at once', async () => {
    const { page } = watched;
    await launch('second-machine', async () => {
      await page.getByRole('combobox', { name: 'SSH key' }).click();
      await page.getByRole('option', { name: 'my laptop' }).click();
    });
    await picture(page, 'machines-list');
    await page.setViewportSize({ width: 360, height: 740 });
    await picture(page, 'machines-list-phone');
    await page.setViewportSize({ width: 1280, height: 800 });
    await page.getByRole('button', { name: 'Select all' }).click();
    await page.getByText('2 of 2 selected.').waitFor();
    await page.getByRole('button', { name: 'Restart selected' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Restart' }).click();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'Terminate selected' }).click();
    const dialog = page.getByRole('dialog', { name: 'Terminate 2 machines?' });
    await dialog.getByRole('button', { name: 'Cancel' }).click();
    assert.equal(await page.getByRole('row').count(), 3, 'cancelling terminated them');
    await page.getByRole('button', { name: 'Terminate selected' }).click();
    await dialog.getByRole('button', { name: 'Terminate' }).click();
    await page.getByRole('heading', { name: 'No machines yet' }).waitFor();
  });

  test('several are launched at once, numbered and tagged', async () => {
    const { page } = watched;
    await page.getByRole('link', { name: 'Launch a machine' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('radio').first().click();
    await dialog.getByRole('button', { name: 'Next' }).click();
    await dialog.getByRole('combobox', { name: 'Image' }).waitFor();
    await dialog.getByRole('button', { name: 'Next' }).click();
    await dialog.getByLabel('Name of the machine').fill('pair');
    await dialog.getByLabel('How many').fill('2');
    await page.getByRole('combobox', { name: 'SSH key' }).click();
    await page.getByRole('option', { name: 'my laptop' }).click();
    const tags = dialog.getByRole('combobox', { name: 'Tags' });
    await tags.fill('Bad Tag');
    await tags.press('Enter');
    await dialog.getByText('“Bad Tag” can’t be a tag').waitFor();
    assert.ok(await dialog.getByRole('button', { name: 'Launch' }).isDisabled());
    await tags.press('Backspace');
    await tags.fill('team=vision');
    await tags.press('Enter');
    await look(page, 'machines-launch-several');
    await dialog.getByRole('button', { name: 'Launch' }).click();
    for (const name of ['pair-1', 'pair-2']) {
      await rowOf(name).getByText('active', { exact: true }).waitFor();
      await rowOf(name).getByText('team=vision').waitFor();
    }
    await look(page, 'machines-several');
  });

  test('where some of several are refused, the page says how many there are and why', async () => {
    const { page } = watched;
    const before = await page.getByRole('row').count();
    await page.getByRole('checkbox', { name: 'Select pair-2' }).check();
    await page.getByRole('button', { name: 'Terminate selected' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Terminate' }).click();
    await rowOf('pair-2').waitFor({ state: 'detached' });
    await page.getByRole('link', { name: 'Launch a machine' }).click();
    const dialog = page.getByRole('dialog');
    // The largest that there is room for, which even a large host has not thirty-two times.
    await dialog.getByRole('radio').last().click();
    await dialog.getByRole('button', { name: 'Next' }).click();
    await dialog.getByRole('combobox', { name: 'Image' }).waitFor();
    await dialog.getByRole('button', { name: 'Next' }).click();
    await dialog.getByLabel('Name of the machine').fill('crowd');
    await dialog.getByLabel('How many').fill('32');
    await page.getByRole('combobox', { name: 'SSH key' }).click();
    await page.getByRole('option', { name: 'my laptop' }).click();
    await dialog.getByRole('button', { name: 'Launch' }).click();
    const notice = dialog.getByRole('alert');
    await notice.waitFor();
    const [, launched] = /^(\d+) of 32 are starting/.exec(await notice.innerText()) ?? [];
    assert.ok(Number(launched) >= 1, await notice.innerText());
    assert.match(await notice.innerText(), /Request id/);
    await look(page, 'machines-some-refused');
    const left = await dialog.getByLabel('How many').inputValue();
    assert.equal(Number(left), 32 - Number(launched), 'those that start would be launched again');
    await page.keyboard.press('Escape');
    await rowOf(`crowd-${launched}`).waitFor();
    assert.equal(await page.getByRole('row').count(), before - 1 + Number(launched));
  });

  test('nothing was forbidden by the policy and nothing broke', () => {
    assert.deepEqual(watched.complaints, []);
  });
});
