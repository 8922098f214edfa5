// Hosts as an owner sees them: what this server has, whether it is well, and adding another.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Page } from 'playwright-core';
import {
  endMachines,
  findViolations,
  joinBy,
  look,
  noBrowser,
  openPage,
  type Served,
  serve,
  type Watched,
} from '#test/support/browser.ts';

interface Offer {
  instance_type: { name: string };
  regions_with_capacity_available: { name: string }[];
}

describe('hosts', { skip: noBrowser }, () => {
  let served: Served;
  let watched: Watched;
  let page: Page;
  let name: string;
  before(async () => {
    served = await serve();
    watched = await openPage({ reducedMotion: 'reduce' });
    ({ page } = watched);
    await joinBy(page, served.setupLink, 'owner@example.com');
    const { data } = await (
      await page.context().request.get(`${served.url}/dashboard/api/hosts`)
    ).json();
    name = data[0].name;
  });
  after(() => endMachines(page, served.url));

  const card = () => page.getByRole('region', { name: `Host ${name}` });

  async function launch() {
    const { request } = page.context();
    await request.post(`${served.url}/api/v1/ssh-keys`, { data: { name: 'laptop' } });
    const types = await (await request.get(`${served.url}/api/v1/instance-types`)).json();
    const offer = (Object.values(types.data) as Offer[]).find(
      (one) => one.regions_with_capacity_available.length > 0,
    );
    return request.post(`${served.url}/api/v1/instance-operations/launch`, {
      data: {
        instance_type_name: offer?.instance_type.name ?? 'cpu_1x_general',
        region_name: offer?.regions_with_capacity_available[0]?.name ?? 'us-east-1',
        ssh_key_names: ['laptop'],
      },
    });
  }

  test('the server itself is a host, with what is taken of it', async () => {
    await page.getByRole('link', { name: 'Hosts' }).click();
    await card().getByText('online').waitFor();
    await card().getByText('0 machines').waitFor();
    await card().getByText('This is the server itself.').waitFor();
    const launched = await launch();
    assert.ok(launched.ok(), await launched.text());
    await card().getByText('1 machine', { exact: false }).waitFor();
    const used = await card()
      .getByRole('progressbar', { name: /Used vCPU/ })
      .getAttribute('aria-valuenow');
    assert.ok(Number(used) > 0, `${used} of the vCPUs are taken`);
    await look(page, 'hosts');
  });

  test('a check says what it found, one thing after the other', async () => {
    await page.getByRole('button', { name: `Check ${name}` }).click();
    const dialog = page.getByRole('dialog', { name: `Check of “${name}”` });
    await dialog.getByText(/All is well\.|Not all is well\./).waitFor();
    assert.ok((await dialog.getByRole('listitem').count()) >= 1);
    await look(page, 'hosts-check');
    await dialog.getByRole('button', { name: 'Done' }).click();
  });

  test('a drained host gets no machines until it is resumed', async () => {
    await page.getByRole('button', { name: `Drain ${name}` }).click();
    await card().getByText('draining').waitFor();
    assert.equal((await launch()).ok(), false);
    await page.getByRole('button', { name: `Resume ${name}` }).click();
    await card().getByText('online').waitFor();
  });

  test('a host is added by a token, and a wrong one is refused in plain words', async () => {
    await page.getByRole('link', { name: 'Add a host' }).click();
    const dialog = page.getByRole('dialog', { name: 'Add a host' });
    await dialog.getByText('incus config trust add millrace').waitFor();
    await dialog.getByText('LXD', { exact: true }).click();
    await dialog.getByText('lxc config trust add --name millrace').waitFor();
    await look(page, 'hosts-add');
    await dialog.getByLabel(/The token/).fill('not-a-token');
    await dialog.getByLabel('Name', { exact: true }).fill('rack-1');
    await dialog.getByRole('button', { name: 'Add', exact: true }).click();
    assert.match(await dialog.getByRole('alert').innerText(), /token/i);
    assert.match(await dialog.getByRole('alert').innerText(), /Request id/);
    assert.deepEqual(await findViolations(page), []);
    await page.goBack();
    await dialog.waitFor({ state: 'detached' });
  });

  test('a host that does not answer says so, also when it is drained, and can be forgotten', async () => {
    const { request } = page.context();
    const [{ region }] = (await (await request.get(`${served.url}/dashboard/api/hosts`)).json())
      .data;
    const added = await request.post(`${served.url}/dashboard/api/hosts`, {
      data: { name: 'lost', region, url: 'unix:/nonexistent/socket' },
    });
    assert.ok(added.ok(), await added.text());
    const lost = page.getByRole('region', { name: 'Host lost' });
    await lost.getByText('offline').waitFor();
    await page.getByRole('button', { name: 'Drain lost' }).click();
    await lost.getByText('draining').waitFor();
    await lost.getByText('offline').waitFor();
    await page.getByRole('button', { name: 'Resume lost' }).click();
    await lost.getByText('draining').waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'Remove lost' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText('Do this only if it never comes back.').waitFor();
    await dialog.getByRole('button', { name: 'Remove' }).click();
    await lost.waitFor({ state: 'detached' });
  });

  test('a viewer sees hosts and is offered nothing that changes them', async () => {
    const { request } = page.context();
    const { link } = await (
      await request.post(`${served.url}/dashboard/api/invitations`, { data: { role: 'viewer' } })
    ).json();
    const { page: viewer } = await openPage();
    await joinBy(viewer, link, 'viewer@example.com');
    await viewer.goto(`${served.url}/#/hosts/new`);
    await viewer.getByRole('region', { name: `Host ${name}` }).waitFor();
    assert.equal(await viewer.getByRole('dialog').count(), 0);
    for (const action of ['Add a host', 'Drain', 'Check', 'Remove']) {
      assert.equal(await viewer.getByRole('button', { name: action }).count(), 0, action);
    }
    const path = `${served.url}/dashboard/api/hosts/${name}`;
    const refused = await viewer.context().request.patch(path, { data: { draining: true } });
    assert.equal(refused.status(), 403);
  });

  test('nothing broke', () => {
    assert.deepEqual(watched.complaints, []);
  });
});
