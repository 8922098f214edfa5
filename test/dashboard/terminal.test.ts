// The terminal of a machine: input, resizing, endless output, and access control.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request as httpRequest } from 'node:http';
import { after, before, test } from 'node:test';
import type { Page } from 'playwright-core';
import { describeInBrowser, findViolations, openPage, screenshot } from '#test/support/browser.ts';
import {
  type Dashboard,
  launchMachine,
  openDashboard,
  signInAsOwner,
  signOut,
  terminateMachines,
  waitForHome,
} from '#test/support/dashboard.ts';
import { until } from '#test/support/until.ts';

describeInBrowser('the terminal', () => {
  let dashboard: Dashboard;
  let page: Page;
  let id: string;
  let cookie: string;
  before(async () => {
    dashboard = await openDashboard(
      { config: { cloud: { driver: 'sandbox' } } },
      { viewport: { width: 1280, height: 800 } },
    );
    ({ page } = dashboard);
    cookie = await cookieOf(page);
    const launched = await launchMachine(dashboard, 'shell-machine');
    assert.equal(launched.status(), 200, await launched.text());
    [id] = (await launched.json()).data.instance_ids;
    await page.goto(`${dashboard.url}/#/machines`);
    await page.getByRole('link', { name: 'Terminal of shell-machine' }).click();
    await page.getByText('Connected.').waitFor();
  });
  after(() => terminateMachines(dashboard));

  const screen = () => page.locator('.xterm-rows').innerText();
  const see = (pattern: RegExp) =>
    until(`${pattern} on the screen`, async () =>
      pattern.exec((await screen()).replaceAll('\u00a0', ' ')),
    );
  const type = async (line: string) => {
    await page.keyboard.type(line);
    await page.keyboard.press('Enter');
  };
  const path = () => `/dashboard/api/instances/${id}/terminal?columns=80&rows=24`;

  /** The status of the response to an upgrade request. */
  async function upgrade(headers: Record<string, string>, to = path()): Promise<number> {
    const webSocketHeaders = {
      connection: 'upgrade',
      upgrade: 'websocket',
      'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
      'sec-websocket-version': '13',
    };
    const request = httpRequest(`${dashboard.url}${to}`, {
      agent: false,
      headers: { ...webSocketHeaders, ...headers },
    });
    request.end();
    return new Promise((resolve, reject) => {
      request.once('error', reject);
      request.once('response', (response) => {
        response.resume();
        resolve(response.statusCode ?? 0);
      });
      request.once('upgrade', (response, socket) => {
        socket.destroy();
        resolve(response.statusCode ?? 0);
      });
    });
  }

  async function openSocket(
    cookie: string,
  ): Promise<{ closed: Promise<{ code: number; reason: string }> }> {
    const address = `${dashboard.url.replace('http', 'ws')}${path()}`;
    const socket = new WebSocket(address, { headers: { cookie } } as unknown as string[]);
    const closed = once(socket, 'close').then(([event]) => event);
    await once(socket, 'open');
    return { closed };
  }

  test('input runs in the machine, and output keeps its colors', async () => {
    await type("echo it-is-$((6 * 7)); printf '\\033[38;2;255;120;0morange\\033[0m\\n'; whoami");
    await see(/it-is-42/);
    await see(/^ubuntu$/m);
    const orange = page.locator('.xterm-rows span', { hasText: /^orange$/ });
    await orange.waitFor();
    assert.match((await orange.getAttribute('style')) ?? '', /rgb\(255, 120, 0\)/);
    await screenshot(page, 'terminal');
    assert.deepEqual(await findViolations(page), []);
  });

  test('the audit log records who opened a terminal', async () => {
    const { page: log } = await openPage({ storageState: await page.context().storageState() });
    await log.goto(`${dashboard.url}/#/audit-log/action=instance.terminal_opened`);
    const row = log.getByRole('row', { name: /Terminal opened/ }).first();
    // The log shows the user’s id until the list of members has loaded.
    await row.getByText('owner@example.com').waitFor();
    assert.match(await row.innerText(), /owner@example\.com/);
    await log.context().close();
  });

  test('the machine knows the size of the window', async () => {
    await type('clear; echo wide-$(tput cols)-');
    const [, wide] = (await see(/wide-(\d+)-/)) ?? [];
    await page.setViewportSize({ width: 500, height: 700 });
    await until('a narrow terminal', async () => {
      await type('echo narrow-$(tput cols)-');
      await see(/narrow-\d+-/);
      const sizes = [...(await screen()).matchAll(/narrow-(\d+)-/g)].map(([, size]) =>
        Number(size),
      );
      return (sizes.at(-1) ?? Number.POSITIVE_INFINITY) < Number(wide) / 2;
    });
    // Without debouncing, the prompt would have been redrawn over this line at each width.
    assert.match(await screen(), new RegExp(`wide-${wide}-`));
    await screenshot(page, 'terminal-narrow');
    await page.setViewportSize({ width: 1280, height: 800 });
  });

  test('endless output is shown at the page’s pace and can be interrupted', async () => {
    await type('clear; yes flood | head -c 4000000; echo all-$((1 + 1))-through');
    await see(/all-2-through/);
    await type('yes again');
    await see(/again\nagain/);
    await page.keyboard.press('Control+c');
    await type('clear; echo still-$((1 + 1))-here');
    await see(/still-2-here/);
  });

  test('after the shell has ended, the user can reconnect', async () => {
    await type('exit');
    await page.getByText('The shell has ended.').waitFor();
    await page.getByRole('button', { name: 'Reconnect' }).click();
    await page.getByText('Connected.').waitFor();
    await type('echo again-$((1 + 1))');
    await see(/again-2/);
  });

  test('the keyboard alone can leave the terminal', async () => {
    const focused = page.locator('textarea:focus');
    assert.equal(await focused.getAttribute('aria-label'), 'Terminal input');
    await page.keyboard.press('Shift+Escape');
    assert.equal(await focused.count(), 0);
  });

  test('a terminal opens only with a session and from the dashboard’s own origin', async () => {
    const { host } = new URL(dashboard.url);
    assert.equal(await upgrade({ cookie, origin: `http://${host}` }), 101);
    assert.equal(await upgrade({}), 401);
    assert.equal(await upgrade({ cookie, origin: 'https://evil.example' }), 403);
    assert.equal(await upgrade({ cookie, 'sec-fetch-site': 'same-site' }), 403);
    assert.equal(await upgrade({ cookie }, '/dashboard/api/me'), 200, 'another path was upgraded');
    const unknown = path().replace(id, '0'.repeat(32));
    assert.equal(await upgrade({ cookie }, unknown), 404);
    assert.equal(await upgrade({ cookie }, path().replace('rows=24', 'rows=0')), 400);
  });

  test('a person has at most sixteen terminals, which signing out closes', async () => {
    const { page: other } = await openPage();
    await other.goto(dashboard.url);
    await signInAsOwner(other);
    await waitForHome(other);
    const cookie = await cookieOf(other);
    const sockets = await Promise.all(Array.from({ length: 15 }, () => openSocket(cookie)));
    const { code, reason } = await (await openSocket(cookie)).closed;
    assert.deepEqual([code, reason], [4000, 'At most 16 terminals can be open at once.']);

    await signOut(other);
    for (const { closed } of sockets) assert.match((await closed).reason, /You are signed out/);
    await page.getByText('Connected.').waitFor();
  });

  test('terminating the machine closes its terminal', async () => {
    await terminateMachines(dashboard);
    await page.getByText('The instance is terminating.').waitFor();
    await see(/again-2/);
  });

  test('the console shows no errors', () => {
    assert.deepEqual(dashboard.consoleErrors, []);
  });
});

async function cookieOf(page: Page): Promise<string> {
  const cookies = await page.context().cookies();
  return cookies.map(({ name, value }) => `${name}=${value}`).join('; ');
}
