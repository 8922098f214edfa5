// A machine's shell in the page: typed into, resized, flooded; and who is kept out of it.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request as httpRequest } from 'node:http';
import { after, before, describe, test } from 'node:test';
import type { Page } from 'playwright-core';
import {
  endMachines,
  findViolations,
  joinBy,
  noBrowser,
  openPage,
  password,
  picture,
  type Served,
  serve,
  type Watched,
} from '#test/support/browser.ts';
import { until } from '#test/support/until.ts';

describe('the terminal', { skip: noBrowser }, () => {
  let served: Served;
  let watched: Watched;
  let page: Page;
  let id: string;
  let cookie: string;
  before(async () => {
    served = await serve();
    watched = await openPage({ viewport: { width: 1280, height: 800 } });
    page = watched.page;
    await joinBy(page, served.setupLink, 'owner@example.com');
    cookie = await cookieOf(page);
    id = await launch();
    await page.goto(`${served.url}/#/machines`);
    await page.getByRole('link', { name: 'Terminal of shell-machine' }).click();
    await page.getByText('Connected.').waitFor();
  });
  after(() => endMachines(page, served.url));

  async function launch(): Promise<string> {
    const { request } = page.context();
    const post = async (path: string, data: object) => {
      const response = await request.post(`${served.url}/api/v1/${path}`, { data });
      assert.equal(response.status(), 200, await response.text());
      return (await response.json()).data;
    };
    const types = (await (await request.get(`${served.url}/api/v1/instance-types`)).json()).data;
    const [type] = Object.keys(types).filter(
      (one) => types[one].regions_with_capacity_available.length > 0,
    );
    await post('ssh-keys', { name: 'laptop' });
    const { instance_ids } = await post('instance-operations/launch', {
      name: 'shell-machine',
      instance_type_name: type,
      region_name: types[type as string].regions_with_capacity_available[0].name,
      ssh_key_names: ['laptop'],
    });
    return instance_ids[0];
  }

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

  /** The status that an upgrade is answered with. */
  async function knock(headers: Record<string, string>, to = path()): Promise<number> {
    const upgrade = {
      connection: 'upgrade',
      upgrade: 'websocket',
      'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
      'sec-websocket-version': '13',
    };
    const request = httpRequest(`${served.url}${to}`, {
      agent: false,
      headers: { ...upgrade, ...headers },
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
    const address = `${served.url.replace('http', 'ws')}${path()}`;
    const socket = new WebSocket(address, { headers: { cookie } } as unknown as string[]);
    const closed = once(socket, 'close').then(([event]) => event);
    await once(socket, 'open');
    return { closed };
  }

  test('what is typed is run in the machine, colours and all', async () => {
    await type("echo it-is-$((6 * 7)); printf '\\033[38;2;255;120;0morange\\033[0m\\n'; whoami");
    await see(/it-is-42/);
    await see(/^ubuntu$/m);
    const orange = page.locator('.xterm-rows span', { hasText: /^orange$/ });
    await orange.waitFor();
    assert.match((await orange.getAttribute('style')) ?? '', /rgb\(255, 120, 0\)/);
    await picture(page, 'terminal');
    assert.deepEqual(await findViolations(page), []);
  });

  test('that a terminal was opened is in the audit log, with who opened it', async () => {
    const { page: log } = await openPage({ storageState: await page.context().storageState() });
    await log.goto(`${served.url}/#/audit-log/action=instance.terminal_opened`);
    const row = log.getByRole('row', { name: /Terminal opened/ }).first();
    // Until the list of members is there, the log shows who it was by id.
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
    // A prompt that was drawn anew at each width on the way would stand where this stood.
    assert.match(await screen(), new RegExp(`wide-${wide}-`));
    await picture(page, 'terminal-narrow');
    await page.setViewportSize({ width: 1280, height: 800 });
  });

  test('output without end is shown at the page’s pace, and can be interrupted', async () => {
    await type('clear; yes flood | head -c 4000000; echo all-$((1 + 1))-through');
    await see(/all-2-through/);
    await type('yes again');
    await see(/again\nagain/);
    await page.keyboard.press('Control+c');
    await type('clear; echo still-$((1 + 1))-here');
    await see(/still-2-here/);
  });

  test('a shell that ended says so and can be had again', async () => {
    await type('exit');
    await page.getByText('The shell has ended.').waitFor();
    await page.getByRole('button', { name: 'Connect again' }).click();
    await page.getByText('Connected.').waitFor();
    await type('echo again-$((1 + 1))');
    await see(/again-2/);
  });

  test('the keyboard alone gets out again', async () => {
    const focused = page.locator('textarea:focus');
    assert.equal(await focused.getAttribute('aria-label'), 'Terminal input');
    await page.keyboard.press('Shift+Escape');
    assert.equal(await focused.count(), 0);
  });

  test('it opens for our own page with a session, and for nobody else', async () => {
    const { host } = new URL(served.url);
    assert.equal(await knock({ cookie, origin: `http://${host}` }), 101);
    assert.equal(await knock({}), 401);
    assert.equal(await knock({ cookie, origin: 'https://evil.example' }), 403);
    assert.equal(await knock({ cookie, 'sec-fetch-site': 'same-site' }), 403);
    assert.equal(await knock({ cookie }, '/dashboard/api/me'), 200, 'it was upgraded elsewhere');
    const stranger = path().replace(id, '0'.repeat(32));
    assert.equal(await knock({ cookie }, stranger), 404);
    assert.equal(await knock({ cookie }, path().replace('rows=24', 'rows=0')), 400);
  });

  test('a session has at most eight, and loses them when it is signed out', async () => {
    const { page: other } = await openPage();
    await other.goto(served.url);
    await other.getByLabel('E-mail').fill('owner@example.com');
    await other.getByLabel('Password', { exact: true }).fill(password);
    await other.getByRole('button', { name: 'Sign in' }).click();
    await other.getByRole('heading', { name: 'Home', level: 1 }).waitFor();
    const cookie = await cookieOf(other);
    const sockets = await Promise.all(Array.from({ length: 8 }, () => openSocket(cookie)));
    const { code, reason } = await (await openSocket(cookie)).closed;
    assert.deepEqual([code, reason], [4000, 'At most 8 terminals can be open at once.']);

    await other.getByRole('button', { name: 'You' }).click();
    await other.getByRole('menuitem', { name: 'Sign out' }).click();
    for (const { closed } of sockets) assert.match((await closed).reason, /You are signed out/);
    await page.getByText('Connected.').waitFor();
  });

  test('it ends with its machine', async () => {
    await endMachines(page, served.url);
    await page.getByText('The machine is terminating.').waitFor();
    await see(/again-2/);
  });

  test('nothing was forbidden by the policy and nothing broke', () => {
    assert.deepEqual(watched.complaints, []);
  });
});

async function cookieOf(page: Page): Promise<string> {
  const cookies = await page.context().cookies();
  return cookies.map(({ name, value }) => `${name}=${value}`).join('; ');
}
