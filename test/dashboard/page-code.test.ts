// The code of a page that does not arrive: it is asked for again, and if that fails too, the page says so.

import { before, test } from 'node:test';
import { describeInBrowser } from '#test/support/browser.ts';
import { type Dashboard, openDashboard, waitForHome } from '#test/support/dashboard.ts';

describeInBrowser('code of a page', () => {
  let dashboard: Dashboard;
  before(async () => {
    dashboard = await openDashboard();
  });

  test('is asked for again', async () => {
    const { page, url } = dashboard;
    let failures = 0;
    // The first request is the early one, before it is known who is signed in.
    await page.route('**/assets/home-*.js', (route) =>
      failures++ < 2 ? route.abort() : route.continue(),
    );
    await page.goto('about:blank');
    await page.goto(url);
    await waitForHome(page);
  });

  test('that never arrives is reported', async () => {
    const { page } = dashboard;
    await page.route('**/assets/team-*.js', (route) => route.abort());
    await page.getByRole('link', { name: 'Team', exact: true }).click();
    await page.getByRole('heading', { name: 'This page could not be displayed' }).waitFor();
    await page.getByRole('button', { name: 'Reload the page' }).waitFor();
  });
});
