// The notice above the request log when it is nearly full.

import { test } from 'node:test';
import { openDatabase } from '#db/open.ts';
import { describeInBrowser } from '#test/support/browser.ts';
import { openDashboard } from '#test/support/dashboard.ts';
import { makeFolder } from '#test/support/process.ts';
import { until } from '#test/support/until.ts';
import { endedRow, insertRows } from '#test/support/usage/usage.ts';

describeInBrowser('a request log that is nearly full', () => {
  test('is announced before requests are deleted', async () => {
    const dataDir = makeFolder();
    const db = await openDatabase({ url: null, poolSize: 1, dataDir });
    await insertRows(
      db,
      Array.from({ length: 900 }, () => endedRow({ at: Date.now() })),
    );
    await db.destroy();
    const { page, url } = await openDashboard({
      config: { usage: { max_rows: 1000 } },
      on: { dataDir, databaseUrl: null },
    });
    await until('the notice is shown', async () => {
      await page.goto(`${url}/#/usage/tab=requests`);
      await page.reload();
      await page.getByRole('button', { name: /CSV/ }).or(page.getByText('CSV')).first().waitFor();
      return page.getByText('It holds 900 of at most 1,000 requests.').isVisible();
    });
  });
});
