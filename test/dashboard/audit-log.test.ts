// The audit log, narrowed down to what happened, who did it and when.

import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import type { Page } from 'playwright-core';
import {
  joinBy,
  look,
  makeKey,
  noBrowser,
  openPage,
  type Served,
  serve,
} from '#test/support/browser.ts';
import { until } from '#test/support/until.ts';

describe('the audit log', { skip: noBrowser }, () => {
  let served: Served;
  let page: Page;
  let complaints: string[];
  before(async () => {
    served = await serve();
    ({ page, complaints } = await openPage({ reducedMotion: 'reduce' }));
    await joinBy(page, served.setupLink, 'owner@example.com');
    const key = await makeKey(page, served.url, 'terraform');
    const made = await fetch(`${served.url}/api/v1/ssh-keys`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
      body: JSON.stringify({ name: 'laptop' }),
    });
    assert.equal(made.status, 200);
    await page.getByRole('link', { name: 'Audit log' }).click();
  });

  const rows = () => page.getByRole('table', { name: 'Audit log' }).getByRole('row');
  const untilRows = (count: number) =>
    until(`${count} events`, async () => (await rows().count()) === count + 1);

  async function choose(filter: string, option: string) {
    await page.getByRole('combobox', { name: filter, exact: true }).click();
    await page.getByRole('option', { name: option, exact: true }).click();
  }

  test('what a key did is told apart from what its owner did', async () => {
    await rows().nth(1).waitFor();
    await look(page, 'audit-log');
    await choose('Who', 'terraform');
    await untilRows(1);
    assert.match(await rows().nth(1).innerText(), /SSH key added\s+key “terraform”/);
    await choose('Who', 'owner@example.com');
    await untilRows(2);
  });

  test('filters add up, and the back button takes them away again', async () => {
    await choose('What', 'Person joined');
    await untilRows(1);
    await page.goBack();
    await untilRows(2);
    await page.goBack();
    await untilRows(1);
  });

  test('a time without events says so, and a link keeps the filters', async () => {
    await page.goto(`${served.url}/#/audit-log/when=dates&from=2020-01-01&to=2020-01-02`);
    await page.getByRole('heading', { name: 'Nothing of this kind' }).waitFor();
    assert.equal(await page.getByLabel('From').inputValue(), '2020-01-01');
    await page.goto(`${served.url}/#/audit-log/when=1`);
    await rows().nth(1).waitFor();
    assert.equal(
      await page.getByRole('combobox', { name: 'RelativeTime' }).inputValue(),
      'Last 24 hours',
    );
    assert.deepEqual(complaints, []);
  });
});
