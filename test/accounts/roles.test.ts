// What each role may do on every route. A new route that forgets to check the role fails here.

import assert from 'node:assert';
import { before, describe, test } from 'node:test';
import { openExistingDatabase } from '#db/open.ts';
import { createWorld, type World } from '#test/support/hostile/examples.ts';
import { collectRoutes } from '#test/support/hostile/routes.ts';
import { type SessionFetch, startTestServer, type TestServer } from '#test/support/server.ts';
import { until } from '#test/support/until.ts';

const api = '/dashboard/api';
/** What people do to get in. */
const isDoor = (path: string) =>
  /\/(login|join|invitations\/look|password-resets(\/look)?)$/.test(path);
/** What is one's own in any role. */
const isOwn = (path: string) => /\/(logout|password|sessions\/:id)$/.test(path);
const isManaging = (path: string) =>
  /^\/(dashboard\/api\/(limits|members|invitations|backends|hosts|images)|api\/v1\/deployments)\b/.test(
    path,
  );
/** Seen by owners, a shell, which is use, and prompts. */
const isClosed = (path: string) =>
  /\/(invitations|terminal|log)$|^\/v1\/(files|responses)\b/.test(path);

async function moveToAnotherAccount(server: TestServer, person: SessionFetch): Promise<void> {
  const { id } = (await (await person(`${api}/me`)).json()) as { id: string };
  const account_id = 'e'.repeat(32);
  const db = await openExistingDatabase({ url: null, poolSize: 1, dataDir: server.dataDir });
  const first = await db.selectFrom('accounts').selectAll().executeTakeFirstOrThrow();
  await db
    .insertInto('accounts')
    .values({ ...first, id: account_id })
    .execute();
  await db.updateTable('memberships').set({ account_id }).where('user_id', '=', id).execute();
  await db.updateTable('sessions').set({ account_id }).where('user_id', '=', id).execute();
  await db.destroy();
  // A session is cached for a second.
  await until('the session is read again', async () => {
    const me = (await (await person(`${api}/me`)).json()) as { account_id: string };
    return me.account_id === account_id;
  });
}

describe('roles', () => {
  let server: TestServer;
  let world: World;
  let routes: { method: string; path: string }[];
  let member: SessionFetch;
  let viewer: SessionFetch;
  let owner: SessionFetch;
  /** The owner of another account on the same database. */
  let stranger: SessionFetch;
  before(async () => {
    const all = await collectRoutes(async () => {
      server = await startTestServer();
    });
    owner = await server.join('owner@example.com');
    world = await createWorld(server, owner);
    routes = all
      .map((route) => route.split(' ') as [string, string])
      .map(([method, path]) => ({ method, path }))
      .filter(({ path }) =>
        /^\/((v1|api|dashboard\/api)\/|(rerank|tokenize|detokenize)$)/.test(path),
      );
    const invite = async (role: string, name = role) => {
      const invited = await owner(`${api}/invitations`, { json: { role } });
      const { link } = (await invited.json()) as { link: string };
      return server.joinBy(link, `${name}@example.com`);
    };
    [member, viewer] = [await invite('member'), await invite('viewer')];
    stranger = await invite('owner', 'stranger');
    await moveToAnotherAccount(server, stranger);
  });

  const isReading = ({ method }: { method: string }) => method === 'GET';

  async function send(
    call: (path: string, init: RequestInit & { json?: unknown }) => Promise<Response>,
    { method, path }: { method: string; path: string },
    id = 'f'.repeat(32),
  ): Promise<number> {
    const address = path.replace(':id', id).replace(/:\w+|\*/g, 'nowhere');
    const example = world.examples[`${method} ${path}`];
    const init = example === undefined ? { method } : { method, json: example };
    const query = path.endsWith('/terminal') ? '?columns=80&rows=24' : '';
    const response = await call(`${address}${query}`, init);
    // Events never end.
    await response.body?.cancel();
    return response.status;
  }

  test('a viewer can change and use nothing', async () => {
    const changing = routes.filter(
      (route) => !isReading(route) && !isDoor(route.path) && !isOwn(route.path),
    );
    assert(changing.length > 30, `${changing.length} routes`);
    for (const route of changing) {
      assert.equal(await send(viewer, route), 403, `${route.method} ${route.path}`);
    }
  });

  test('a viewer sees all but invitations, shells and prompts', async () => {
    for (const route of routes.filter(isReading)) {
      const status = await send(viewer, route);
      const what = `GET ${route.path} → ${status}`;
      if (isClosed(route.path)) assert.equal(status, 403, what);
      else assert(![401, 403].includes(status), what);
    }
  });

  test('a member manages neither people, limits of the account, backends nor hosts', async () => {
    const managing = routes.filter(
      (route) => !isReading(route) && isManaging(route.path) && !isDoor(route.path),
    );
    assert(managing.length >= 12, `${managing.length} routes`);
    for (const route of managing) {
      assert.equal(await send(member, route), 403, `${route.method} ${route.path}`);
    }
  });

  test('a member changes and revokes only the keys that the member created', async () => {
    const create = async (session: SessionFetch) => {
      const response = await session(`${api}/api-keys`, { json: { label: 'some' } });
      return ((await response.json()) as { id: string }).id;
    };
    const change = { method: 'PATCH', json: { limits: { requests_per_minute: 5 } } };
    for (const init of [change, { method: 'DELETE' }]) {
      const [own, other] = [await create(member), await create(owner)];
      const tries: [string, SessionFetch, string, number][] = [
        ['a viewer', viewer, own, 403],
        ['a member, own key', member, own, 200],
        ['a member, other key', member, other, 403],
        ['an owner, own key', owner, other, 200],
        ['an owner, a member’s key', owner, await create(member), 200],
        ['an owner of another account', stranger, await create(owner), 404],
      ];
      for (const [who, session, id, status] of tries) {
        const response = await session(`${api}/api-keys/${id}`, init);
        assert.equal(response.status, status, `${who}: ${init.method}`);
      }
    }
  });

  test('only owners see the arguments and the set-up script of a deployment', async () => {
    const secrets = { args: ['--token', 'hush'], setup: 'login hush' };
    await owner('/api/v1/deployments', {
      headers: { origin: server.url },
      json: {
        ...{ name: 'closed', model: 'hermes3-8b', engine: 'command', program: process.execPath },
        ...{ runs_on: 'cpu_1x_general', ...secrets },
      },
    });
    type View = { name: string; args: unknown; setup: unknown };
    const callers: [string, Pick<TestServer, 'fetch'>['fetch'], Omit<View, 'name'>][] = [
      ['owner', owner, secrets],
      ['member', member, { args: null, setup: null }],
      ['viewer', viewer, { args: null, setup: null }],
      ['key', server.fetch, { args: null, setup: null }],
    ];
    for (const [who, call, expected] of callers) {
      const one = (await (await call('/api/v1/deployments/closed')).json()) as { data: View };
      const all = (await (await call('/api/v1/deployments')).json()) as { data: View[] };
      for (const seen of [one.data, all.data.find(({ name }) => name === 'closed')])
        assert.deepEqual({ args: seen?.args, setup: seen?.setup }, expected, who);
    }
  });

  test('what a deployment uses and cost is seen by its account alone', async () => {
    const json = {
      name: 'measured',
      model: 'hermes3-8b',
      engine: 'command',
      program: process.execPath,
    };
    await owner('/api/v1/deployments', { headers: { origin: server.url }, json });
    for (const path of ['', '/stats', '/cost']) {
      const call = async (fetch: TestServer['fetch']) =>
        (await fetch(`/api/v1/deployments/measured${path}`)).status;
      const seen = await Promise.all([owner, member, viewer, server.fetch, stranger].map(call));
      assert.deepEqual(seen, [200, 200, 200, 200, 404], path);
    }
  });

  test('a stored response is read and changed by members, and unknown to viewers and other accounts', async () => {
    const created = await member('/v1/responses', {
      json: { model: 'hermes3-8b', input: 'Hello', max_output_tokens: 4 },
    });
    const { id } = (await created.json()) as { id: string };
    const tries: [string, string, Record<'viewer' | 'stranger' | 'owner', number>][] = [
      ['GET', '', { viewer: 403, stranger: 404, owner: 200 }],
      ['GET', '?stream=true', { viewer: 403, stranger: 404, owner: 400 }],
      ['GET', '/input_items', { viewer: 403, stranger: 404, owner: 200 }],
      ['POST', '/cancel', { viewer: 403, stranger: 404, owner: 400 }],
      ['DELETE', '', { viewer: 403, stranger: 404, owner: 200 }],
    ];
    for (const [
      method,
      path,
      { viewer: asViewer, stranger: asStranger, owner: asOwner },
    ] of tries) {
      const call = async (session: SessionFetch) =>
        (await session(`/v1/responses/${id}${path}`, { method })).status;
      const seen = [await call(viewer), await call(stranger), await call(owner)];
      assert.deepEqual(seen, [asViewer, asStranger, asOwner], `${method} ${path}`);
    }
    const json = { model: 'hermes3-8b', input: 'x', previous_response_id: id };
    assert.equal((await stranger('/v1/responses', { json })).status, 400);
  });

  test('to another account, nothing of this one exists', async () => {
    const idsAt = async (path: string) => {
      const { data } = (await (await member(path)).json()) as { data: { id: string }[] };
      return data.map(({ id }) => id);
    };
    await until('a viewer sees the request', async () => {
      const response = await viewer(`${api}/usage/requests/${world.requestId}`);
      return response.status === 200;
    });
    const people = await idsAt(`${api}/members`);
    const ids = [...world.ids, ...people, ...(await idsAt(`${api}/sessions`))];
    assert(ids.length >= world.ids.length + 4);
    const named = routes.filter(({ path }) => path.includes(':id'));
    assert(named.length > 20, `${named.length} routes`);
    for (const route of named) {
      const own = route.path.startsWith('/v1/') ? world.inferenceIds : [];
      for (const id of [...ids, ...own]) {
        const what = `${route.method} ${route.path} ${id}`;
        assert.equal(await send(stranger, route, id), 404, what);
      }
    }
    const operations = routes.filter(({ path }) => path.includes('/instance-operations/'));
    assert.equal(operations.length, 4);
    for (const route of operations) {
      const status = await send(stranger, route);
      assert([400, 404].includes(status), `${route.path} → ${status}`);
    }
    const lists = routes.filter((route) => isReading(route) && !/[:*]|\/events$/.test(route.path));
    for (const { path } of lists) {
      const text = await (await stranger(path)).text();
      const shown = [...ids, ...world.inferenceIds].filter((id) => text.includes(id));
      assert.deepEqual(shown, [], path);
    }
  });

  test('without a session, and with a key instead of one, the dashboard’s endpoints are closed', async () => {
    const closed = routes.filter(({ path }) => path.startsWith(api) && !isDoor(path));
    const stranger: typeof server.fetch = (path, { json, ...init } = {}) =>
      fetch(`${server.url}${path}`, {
        ...init,
        ...(json === undefined
          ? {}
          : { body: JSON.stringify(json), headers: { 'content-type': 'application/json' } }),
      });
    for (const route of closed) {
      const what = `${route.method} ${route.path}`;
      assert.equal(await send(stranger, route), 401, what);
      assert.equal(await send(server.fetch, route), 403, what);
    }
  });
});
