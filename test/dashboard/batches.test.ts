// The page of batches: progress, cancelling, and the files of results.

import assert from 'node:assert/strict';
import { text } from 'node:stream/consumers';
import { before, test } from 'node:test';
import type { Page } from 'playwright-core';
import {
  createBatch,
  toClient,
  toLine,
  toLines,
  toText,
  untilEnded,
} from '#test/support/batches.ts';
import { checkAppearance, describeInBrowser } from '#test/support/browser.ts';
import { createApiKey, type Dashboard, openDashboard } from '#test/support/dashboard.ts';

describeInBrowser('batches', () => {
  let dashboard: Dashboard;
  let page: Page;
  before(async () => {
    dashboard = await openDashboard();
    ({ page } = dashboard);
  });
  const row = (id: string) => page.getByRole('row', { name: id });

  test('shows the progress of batches, downloads their results, and cancels one', async () => {
    await page.getByRole('link', { name: 'Batches' }).click();
    await page.getByRole('heading', { name: 'No batches yet' }).waitFor();
    const key = await createApiKey(dashboard, 'jobs');
    const client = toClient({ url: dashboard.url, key });
    const body = { max_tokens: 2 };
    const lines = [toLine('good', {}, body), toLine('bad', {}, { max_tokens: 1_000_000 })];
    const { id } = await createBatch(client, toText(lines));
    await untilEnded(client, id);
    await page.getByRole('link', { name: 'Batches' }).click();
    await row(id).getByText('2 of 2, 1 failed').waitFor();
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('link', { name: `Results of ${id}` }).click(),
    ]);
    assert.equal(download.suggestedFilename(), `${id}_results.jsonl`);
    const results = await text(await download.createReadStream());
    assert.equal(JSON.parse(results).custom_id, 'good');
    await page.getByRole('link', { name: `Errors of ${id}` }).waitFor();

    const many = await createBatch(client, toText(toLines(5_000)));
    await page.getByRole('button', { name: `Cancel ${many.id}` }).click();
    await page.getByRole('button', { name: 'Cancel batch', exact: true }).click();
    await row(many.id).getByText('cancelled', { exact: true }).waitFor();
    await checkAppearance(page, 'batches');
    await page.setViewportSize({ width: 390, height: 780 });
    const bar = await page.locator('.mantine-Progress-root').first().boundingBox();
    assert.ok((bar?.width ?? 0) > 100, 'the progress is visible on a phone');
    await page.setViewportSize({ width: 1280, height: 800 });
  });
});
