// The notice above the request log when it is nearly full.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { openDatabase } from '#db/open.ts';
import { noBrowser } from '#test/support/browser.ts';
import { openDashboard } from '#test/support/dashboard.ts';
import { makeFolder } from '#test/support/process.ts';
import { until } from '#test/support/until.ts';
import { endedRow, insertRows } from '#test/support/usage/usage.ts';

describe('a request log that is nearly full', { skip: noBrowser }, () => {
  test('is announced before requests are deleted', async () => {
    const dataDir = makeFolder();
    const db = await openDatabase({ url: null, poolSize: 1, dataDir });
    await insertRows(
      db,
      Array.from({ length: 900 }, () => endedRow({ at: Date.now() })),
    );
    await db.destroy();
    const config = join(makeFolder(), 'millrace.yaml');
    writeFileSync(config, 'inference: { preload: false }\nusage: { max_rows: 1000 }\n');
    const { page, url } = await openDashboard(['--config', config, '--data-dir', dataDir]);
    await until('the notice is shown', async () => {
      await page.goto(`${url}/#/usage/tab=requests`);
      await page.reload();
      await page.getByRole('button', { name: /CSV/ }).or(page.getByText('CSV')).first().waitFor();
      return page.getByText('It holds 900 of at most 1,000 requests.').isVisible();
    });
  });
});
