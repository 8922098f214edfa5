// Who may do what, on every route that there is: a new one that forgets to ask for a role fails here.

import assert from 'node:assert';
import { before, describe, test } from 'node:test';
import { createWorld, type World } from '#test/support/hostile/examples.ts';
import { collectRoutes } from '#test/support/hostile/routes.ts';
import { type SessionFetch, startTestServer, type TestServer } from '#test/support/server.ts';

const api = '/dashboard/api';
/** What people do to get in. */
const isDoor = (path: string) =>
  /\/(login|join|invitations\/look|password-resets(\/look)?)$/.test(path);
/** What is one's own in any role. */
const isOwn = (path: string) => /\/(logout|password|sessions\/:id)$/.test(path);
const isManaging = (path: string) =>
  /^\/dashboard\/api\/(limits|members|invitations|backends|hosts|images)\b/.test(path);
/** Seen by owners, and a shell, which is use. */
const isClosed = (path: string) => /\/(invitations|terminal)$/.test(path);

describe('roles', () => {
  let server: TestServer;
  let world: World;
  let routes: { method: string; path: string }[];
  let member: SessionFetch;
  let viewer: SessionFetch;
  before(async () => {
    const all = await collectRoutes(async () => {
      server = await startTestServer();
    });
    const owner = await server.join('owner@example.com');
    world = await createWorld(server, owner);
    routes = all
      .map((route) => route.split(' ') as [string, string])
      .map(([method, path]) => ({ method, path }))
      .filter(({ path }) => /^\/(v1|api\/v1|dashboard\/api)\//.test(path));
    const invite = async (role: string) => {
      const invited = await owner(`${api}/invitations`, { json: { role } });
      const { link } = (await invited.json()) as { link: string };
      return server.joinBy(link, `${role}@example.com`);
    };
    [member, viewer] = [await invite('member'), await invite('viewer')];
  });

  const isReading = ({ method }: { method: string }) => method === 'GET';

  async function send(
    call: (path: string, init: RequestInit & { json?: unknown }) => Promise<Response>,
    { method, path }: { method: string; path: string },
  ): Promise<number> {
    const address = path.replace(':id', 'f'.repeat(32)).replace(/:\w+|\*/g, 'nowhere');
    const example = world.examples[`${method} ${path}`];
    const init = example === undefined ? { method } : { method, json: example };
    const query = path.endsWith('/terminal') ? '?columns=80&rows=24' : '';
    const response = await call(`${address}${query}`, init);
    // Events never end.
    await response.body?.cancel();
    return response.status;
  }

  test('a viewer changes and uses nothing', async () => {
    const changing = routes.filter(
      (route) => !isReading(route) && !isDoor(route.path) && !isOwn(route.path),
    );
    assert(changing.length > 30, `${changing.length} routes`);
    for (const route of changing) {
      assert.equal(await send(viewer, route), 403, `${route.method} ${route.path}`);
    }
  });

  test('a viewer sees all but invitations and shells', async () => {
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
