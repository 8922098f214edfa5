// The endpoints of weights: roles, responses, and progress as it happens.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Pull, WeightsOverview } from '#inference/weights/schema.ts';
import { randomGguf } from '#test/support/gguf.ts';
import { startHub } from '#test/support/hub.ts';
import { type SessionFetch, startTestServer } from '#test/support/server.ts';
import { until } from '#test/support/until.ts';

const model = 'llama3.2-3b-instruct';
const repo = 'bartowski/Llama-3.2-3B-Instruct-GGUF';
const name = `${repo.replace('/', '--')}/Llama-3.2-3B-Instruct-Q4_K_M.gguf`;
const bytes = randomGguf(200_000);
const root = '/dashboard/api/weights';

async function start() {
  const hub = await startHub();
  hub.add(repo, { 'Llama-3.2-3B-Instruct-Q4_K_M.gguf': bytes });
  const server = await startTestServer({
    config: { models: { hub_url: hub.url, disk_reserve_gib: 0 } },
  });
  return { hub, server, owner: await server.join() };
}

const overview = async (person: SessionFetch) =>
  (await (await person(root)).json()) as WeightsOverview;

describe('the weights endpoints', () => {
  it('a pull is accepted at once, can be watched, and its weights list the models they serve', async () => {
    const { hub, owner } = await start();
    hub.pauseAfter(50_000);
    const asked = await owner(`${root}/pulls`, { json: { model } });
    assert.equal(asked.status, 202);
    const pull = (await asked.json()) as Pull;
    assert.equal(pull.name, name);
    assert.equal(pull.bytes_total, bytes.length);
    const watched = await owner(`${root}/pulls/${pull.id}/events`);
    assert.match(watched.headers.get('content-type') ?? '', /^text\/event-stream/);
    await until('bytes come', async () => {
      const one = (await (await owner(`${root}/pulls/${pull.id}`)).json()) as Pull;
      return one.bytes_done === 50_000;
    });
    hub.release();
    const events = (await watched.text())
      .split('\n\n')
      .filter((event) => event.startsWith('data: '))
      .map((event) => JSON.parse(event.slice(6)) as Pull);
    assert.equal(events.at(-1)?.state, 'done');
    assert.equal(events.at(-1)?.bytes_done, bytes.length);
    assert(events.length >= 2, 'no progress was reported');

    const { data, models, pulls } = await overview(owner);
    assert.deepEqual(data, [
      {
        name,
        repo,
        quant: 'Q4_K_M',
        files: ['Llama-3.2-3B-Instruct-Q4_K_M.gguf'],
        bytes: bytes.length,
        bytes_on_disk: bytes.length,
        state: 'whole',
        models: [model],
        deployments: [],
      },
    ]);
    assert.equal(models.find(({ id }) => id === model)?.weights, name);
    assert.equal(models.length, 13);
    assert.equal(pulls[0]?.state, 'done');

    assert.equal((await owner(`${root}/${name}`, { method: 'DELETE' })).status, 200);
    assert.deepEqual((await overview(owner)).data, []);
  });

  it('a viewer reads but can’t pull, cancel or remove; keys and unauthenticated clients see nothing', async () => {
    const { server, owner } = await start();
    const invitation = await owner('/dashboard/api/invitations', { json: { role: 'viewer' } });
    const { link } = (await invitation.json()) as { link: string };
    const viewer = await server.joinBy(link, 'viewer@example.com');
    assert.equal((await viewer(root)).status, 200);
    assert.equal((await viewer(`${root}/pulls`, { json: { model } })).status, 403);
    const id = '0'.repeat(32);
    assert.equal((await viewer(`${root}/pulls/${id}`, { method: 'DELETE' })).status, 403);
    assert.equal((await viewer(`${root}/${name}`, { method: 'DELETE' })).status, 403);
    assert.equal((await server.fetch(root)).status, 403);
    assert.equal((await fetch(`${server.url}${root}`)).status, 401);
  });

  it('refusals have a message and a code', async () => {
    const { hub, owner } = await start();
    const refused = async (path: string, init: object) => {
      const response = await owner(`${root}${path}`, init);
      const { error } = (await response.json()) as { error: { code: string; message: string } };
      return [response.status, error.code];
    };
    const id = '0'.repeat(32);
    assert.deepEqual(await refused(`/pulls/${id}`, {}), [404, 'not_found']);
    assert.deepEqual(await refused(`/pulls/${id}/events`, {}), [404, 'not_found']);
    assert.deepEqual(await refused(`/pulls/${id}`, { method: 'DELETE' }), [404, 'not_found']);
    assert.deepEqual(await refused('/no--such/x.gguf', { method: 'DELETE' }), [404, 'not_found']);
    assert.deepEqual(await refused('/%2e%2e%2fx.gguf', { method: 'DELETE' }), [404, 'not_found']);
    assert.deepEqual(await refused('/pulls', { json: { model: 'x' } }), [400, 'invalid_body']);
    assert.deepEqual(await refused('/pulls', { json: { model: 7 } }), [400, 'invalid_body']);
    assert.deepEqual(await refused('/pulls', { json: { repo: 'o/none' } }), [400, 'hub_denied']);
    await hub.close();
    assert.deepEqual(await refused('/pulls', { json: { model } }), [502, 'hub_unavailable']);
  });

  it('a pull is cancelled through its endpoint, and a stopping server ends event streams', async () => {
    const { hub, server, owner } = await start();
    hub.pauseAfter(1_000);
    const ask = async () =>
      (await (await owner(`${root}/pulls`, { json: { model } })).json()) as Pull;
    const { id } = await ask();
    assert.equal((await owner(`${root}/pulls/${id}`, { method: 'DELETE' })).status, 200);
    assert.deepEqual((await overview(owner)).data, []);
    const again = await ask();
    const watched = await owner(`${root}/pulls/${again.id}/events`);
    await until('it runs', () => hub.sending() === 1);
    await server.stop();
    assert.match(await watched.text(), /"state":"(queued|running)"/);
  });

  it('one person can’t use up the streams of others, and a removed one’s streams end', async () => {
    const { hub, server, owner } = await start();
    hub.pauseAfter(1_000);
    const invitation = await owner('/dashboard/api/invitations', { json: { role: 'viewer' } });
    const { link } = (await invitation.json()) as { link: string };
    const viewer = await server.joinBy(link, 'viewer@example.com');
    const me = (await (await viewer('/dashboard/api/me')).json()) as { id: string };
    const { id } = (await (await owner(`${root}/pulls`, { json: { model } })).json()) as Pull;
    const path = `${root}/pulls/${id}/events`;
    // It would stay open without a client.
    assert.equal((await viewer(path, { method: 'HEAD' })).status, 405);
    const watched = await Promise.all(Array.from({ length: 16 }, () => viewer(path)));
    assert.deepEqual(new Set(watched.map(({ status }) => status)), new Set([200]));
    assert.equal((await viewer(path)).status, 429);
    const other = await owner(path);
    assert.equal(other.status, 200);
    await owner(`/dashboard/api/members/${me.id}`, { method: 'DELETE' });
    // They end: otherwise the test would time out.
    for (const stream of watched) await stream.text();
    await other.body?.cancel();
    await owner(`${root}/pulls/${id}`, { method: 'DELETE' });
  });
});
