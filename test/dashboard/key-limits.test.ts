// Limits and spend of keys and of the account, as a person sets them and a program meets them.

import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import type { Page } from 'playwright-core';
import {
  ask,
  joinBy,
  look,
  makeKey,
  noBrowser,
  openPage,
  type Served,
  serve,
  type Watched,
} from '#test/support/browser.ts';
import { until } from '#test/support/until.ts';

describe('limits of keys', { skip: noBrowser }, () => {
  let served: Served;
  let watched: Watched;
  let page: Page;
  let key: string;
  before(async () => {
    served = await serve();
    watched = await openPage({ reducedMotion: 'reduce' });
    ({ page } = watched);
    await joinBy(page, served.setupLink, 'owner@example.com');
  });

  const rowOf = (label: string) => page.getByRole('row', { name: new RegExp(label) });

  test('a key is made with limits, and a program that passes one is refused', async () => {
    await page.goto(`${served.url}/#/api-keys/new`);
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Label').fill('night job');
    await dialog.getByLabel('Requests a minute').fill('2');
    await dialog.getByLabel('Dollars a month').fill('20');
    await look(page, 'api-keys-make');
    await dialog.getByRole('button', { name: 'Make the key' }).click();
    key = await page.getByLabel('night job', { exact: true }).innerText();
    await page.getByRole('button', { name: 'Done' }).click();
    assert.equal((await ask(served.url, key)).status, 200);
    assert.equal((await ask(served.url, key)).status, 200);
    assert.equal((await ask(served.url, key)).status, 429);
    const text = await rowOf('night job').innerText();
    assert.match(text, /2 requests\/min/);
    assert.match(text, /\$20\.00 a month/);
  });

  test('the list says when a key was last used and what it spent', async () => {
    await until('the spend is shown', async () => {
      await page.reload();
      await rowOf('night job').waitFor();
      return /2 requests/.test(await rowOf('night job').getByText(/token/).innerText());
    });
    const text = await rowOf('night job').innerText();
    assert.match(text, /\$0\.0\d+ of \$20\.00/);
    assert.match(text, /just now|minute/);
    await look(page, 'api-keys-list');
  });

  test('limits are changed and taken away, and the next request goes by them', async () => {
    await page.getByRole('link', { name: 'Edit night job' }).click();
    const dialog = page.getByRole('dialog', { name: 'Edit “night job”' });
    await dialog.getByLabel('Label').fill('day job');
    await dialog.getByLabel('Requests a minute').fill('');
    await dialog.getByLabel('Tokens a minute').fill('200000');
    await dialog.getByRole('button', { name: 'Save' }).click();
    await dialog.waitFor({ state: 'detached' });
    const text = await rowOf('day job').innerText();
    assert.match(text, /200,000 tokens\/min/);
    assert.doesNotMatch(text, /requests\/min/);
    assert.equal((await ask(served.url, key)).status, 200);
  });

  test('the back button closes the dialog of a key', async () => {
    await page.getByRole('link', { name: 'Edit day job' }).click();
    await page.getByRole('dialog').waitFor();
    await page.goBack();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
  });

  test('an owner limits the whole account', async () => {
    await page.getByRole('link', { name: 'Change the account’s limits' }).click();
    const dialog = page.getByRole('dialog', { name: 'Limits of the account' });
    await dialog.getByLabel('Requests a minute').fill('1');
    await dialog.getByRole('button', { name: 'Save' }).click();
    await dialog.waitFor({ state: 'detached' });
    await page.getByText('1 request/min').waitFor();
    const other = await makeKey(page, served.url, 'other');
    const statuses = [await ask(served.url, other), await ask(served.url, other)];
    assert.ok(statuses.some(({ status }) => status === 429));
  });

  test('a limit that makes no sense is refused before it is sent', async () => {
    await page.getByRole('link', { name: 'Change the account’s limits' }).click();
    const dialog = page.getByRole('dialog', { name: 'Limits of the account' });
    await dialog.getByLabel('Requests a minute').fill('0');
    await dialog.getByRole('button', { name: 'Save' }).click();
    const isValid = await dialog
      .getByLabel('Requests a minute')
      .evaluate((field) => (field as unknown as { checkValidity(): boolean }).checkValidity());
    assert.equal(isValid, false);
    await dialog.waitFor();
    await dialog.getByRole('button', { name: 'Cancel' }).click();
  });

  test('a member sees the account’s limits and why they can’t change them', async () => {
    const { request } = page.context();
    const { link } = await (
      await request.post(`${served.url}/dashboard/api/invitations`, { data: { role: 'member' } })
    ).json();
    const { page: member } = await openPage();
    await joinBy(member, link, 'member@example.com');
    await member.goto(`${served.url}/#/api-keys`);
    await member.getByText('Only an owner changes these limits.').waitFor();
    await member.goto(`${served.url}/#/api-keys/limits`);
    await member.getByRole('row', { name: /day job/ }).waitFor();
    assert.equal(await member.getByRole('dialog').count(), 0);
    const refused = await member
      .context()
      .request.put(`${served.url}/dashboard/api/limits`, { data: { requests_per_minute: null } });
    assert.equal(refused.status(), 403);
  });

  test('no key is kept in the browser, and nothing broke', async () => {
    const kept = await page.evaluate(
      'JSON.stringify([{ ...localStorage }, { ...sessionStorage }])',
    );
    assert.doesNotMatch(String(kept), /secret_/);
    assert.deepEqual(watched.complaints, []);
  });
});
