// A real server with its dashboard open in a real browser, and what tests do there again and again.

import assert from 'node:assert/strict';
import type { BrowserContextOptions, Page } from 'playwright-core';
import { startScriptedUpstream } from '#inference/engines/scripted/server.ts';
import { atEnd, type BrowserPage, openPage } from './browser.ts';
import { password, startTestServer, type TestOptions } from './server.ts';
import { until } from './until.ts';

export { password };

const ownerEmail = 'owner@example.com';

export interface DashboardServer {
  url: string;
  setupLink: string;
  dataDir: string;
}

/** A server, and a page in which its owner is signed in. */
export type Dashboard = DashboardServer & BrowserPage;

type Settings = Pick<TestOptions, 'config' | 'on'>;

/** A server in this process, which ends with the describe. Models are loaded on first use: most of these tests use none. */
export async function startServer({ config, on }: Settings = {}): Promise<DashboardServer> {
  const inference = { preload: false, ...config?.inference };
  const server = await startTestServer({
    config: { ...config, inference },
    ...(on !== undefined && { on }),
  });
  atEnd(() => server.stop());
  const { url, setupLink, dataDir } = server;
  assert(setupLink !== null);
  return { url, setupLink, dataDir };
}

/** Starts a server, and opens its dashboard with its owner signed in. */
export async function openDashboard(
  settings: Settings = {},
  options: BrowserContextOptions = { reducedMotion: 'reduce' },
): Promise<Dashboard> {
  const server = await startServer(settings);
  const opened = await openPage(options);
  await enter(opened.page, server.setupLink, ownerEmail);
  return { ...server, ...opened };
}

/** Joins by the link without its page, whose tests are in first-minute.test.ts and team.test.ts: it takes a second of CPU
 * time. */
async function enter(page: Page, link: string, email: string): Promise<void> {
  const token = link.split('/').at(-1);
  const { origin } = new URL(link);
  await post(page, `${origin}/dashboard/api/join`, { token, email, password });
  await page.goto(origin);
  await waitForHome(page);
}

/** Joins with a setup link or an invitation link, and waits for the home page. */
export async function joinWith(page: Page, link: string, email: string): Promise<void> {
  await page.goto(link);
  await page.getByLabel('Email').fill(email);
  await page.getByLabel('Password', { exact: true }).fill(password);
  await page.getByRole('button', { name: 'Continue' }).click();
  await waitForHome(page);
}

/** Opens a page in which a new user with this role is signed in. */
export async function openAs(dashboard: Dashboard, role: 'member' | 'viewer'): Promise<Page> {
  const response = await dashboard.page
    .context()
    .request.post(`${dashboard.url}/dashboard/api/invitations`, { data: { role } });
  const { page } = await openPage();
  await enter(page, (await response.json()).link, `${role}@example.com`);
  return page;
}

/** Fills in the sign-in form of whatever page is open. */
export async function signInAsOwner(page: Page, withPassword = password): Promise<void> {
  await page.getByLabel('Email').fill(ownerEmail);
  await page.getByLabel('Password', { exact: true }).fill(withPassword);
  await page.getByRole('button', { name: 'Sign in' }).click();
}

export const waitForHome = (page: Page) =>
  page.getByRole('heading', { name: 'Home', level: 1 }).waitFor();

export async function signOut(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Account menu' }).click();
  await page.getByRole('menuitem', { name: 'Sign out' }).click();
}

/** Launches a machine of the first type that has capacity. Returns the response, which may be an error. */
export async function launchMachine({ page, url }: Pick<Dashboard, 'page' | 'url'>, name?: string) {
  const { request } = page.context();
  await request.post(`${url}/api/v1/ssh-keys`, { data: { name: 'laptop' } });
  const types = await (await request.get(`${url}/api/v1/instance-types`)).json();
  const offers = Object.values(types.data) as {
    instance_type: { name: string };
    regions_with_capacity_available: { name: string }[];
  }[];
  const offer = offers.find((one) => one.regions_with_capacity_available.length > 0);
  return request.post(`${url}/api/v1/instance-operations/launch`, {
    data: {
      ...(name === undefined ? {} : { name }),
      instance_type_name: offer?.instance_type.name ?? 'cpu_1x_general',
      region_name: offer?.regions_with_capacity_available[0]?.name ?? 'us-east-1',
      ssh_key_names: ['laptop'],
    },
  });
}

/** Machines outlive the server that launched them, so a test that fails half-way must not leave any. */
export async function terminateMachines({ page, url }: Pick<Dashboard, 'page' | 'url'>) {
  const { request } = page.context();
  const list = async () => {
    const { data } = await (await request.get(`${url}/api/v1/instances`)).json();
    return (data as { id: string }[]).map(({ id }) => id);
  };
  const terminate = `${url}/api/v1/instance-operations/terminate`;
  await request.post(terminate, { data: { instance_ids: await list() } });
  await until('the machines are gone', async () => (await list()).length === 0);
}

/** Creates an API key with the session of the page. */
export async function createApiKey(
  { page, url }: Pick<Dashboard, 'page' | 'url'>,
  label: string,
): Promise<string> {
  const response = await page
    .context()
    .request.post(`${url}/dashboard/api/api-keys`, { data: { label } });
  return (await response.json()).key;
}

/** Gives models a backend, for tests of costs: a stand-in is free. */
export async function addBackends(
  { page, url }: Pick<Dashboard, 'page' | 'url'>,
  models: readonly string[],
): Promise<void> {
  const upstream = await startScriptedUpstream();
  atEnd(() => upstream.close());
  for (const model of models) {
    const data = { model, name: 'scripted', url: upstream.url, upstream_model: 'scripted' };
    await post(page, `${url}/dashboard/api/backends`, data);
  }
}

/** Sends a short chat request, as a program does. */
export async function sendChat(
  url: string,
  key: string,
  { model = 'llama3.1-8b-instruct', stream = false } = {},
): Promise<Response> {
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
    body: JSON.stringify({
      model,
      stream,
      max_tokens: 8,
      messages: [{ role: 'user', content: 'What is a millrace?' }],
    }),
  });
  await response.clone().arrayBuffer();
  return response;
}

/** Posts with the session of the page. The response must be a 200. */
export async function post(page: Page, path: string, data: object) {
  const response = await page.context().request.post(path, { data });
  assert.equal(response.status(), 200, await response.text());
  return response.json();
}
