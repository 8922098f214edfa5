// Backends through HTTP: added, drained and removed while the server runs, on both databases, with a real
// upstream on a socket.

import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { openDatabase } from '#db/open.ts';
import type { BackendView } from '#inference/backends/schema.ts';
import {
  type ScriptedUpstream,
  type ScriptedUpstreamOptions,
  startScriptedUpstream,
} from '#inference/engines/scripted/server.ts';
import { createRunningClock } from '#test/support/clock.ts';
import { createDatabase, databases, noPostgres } from '#test/support/databases.ts';
import { type SessionFetch, startTestServer, type TestServer } from '#test/support/server.ts';
import { until } from '#test/support/until.ts';

const root = '/dashboard/api/backends';
const model = 'hermes3-8b';
const apiKey = 'sk-upstream-secret-1234567890';

const upstreams: ScriptedUpstream[] = [];
describe('backends that change', () => {
  after(() => Promise.all(upstreams.map((upstream) => upstream.close())));

  async function startUpstream(options: ScriptedUpstreamOptions = {}): Promise<ScriptedUpstream> {
    const upstream = await startScriptedUpstream({ model: 'org/name', ...options });
    upstreams.push(upstream);
    return upstream;
  }

  const newBackend = (upstream: ScriptedUpstream, changes: object = {}) => ({
    model,
    name: 'first',
    url: upstream.url,
    upstream_model: 'org/name',
    server: 'vllm',
    ...changes,
  });

  const messages = [{ role: 'user', content: 'Hello' }];

  const chat = (server: TestServer, id = model) =>
    server.fetch('/v1/chat/completions', { json: { model: id, messages, max_tokens: 5 } });

  async function servedBy(server: TestServer, id = model): Promise<string | null> {
    const response = await chat(server, id);
    await response.text();
    return response.headers.get('x-served-by');
  }

  async function list(person: SessionFetch, id = model): Promise<BackendView[]> {
    const { data } = (await (await person(`${root}?limit=500`)).json()) as { data: BackendView[] };
    return data.filter((backend) => backend.model === id);
  }

  async function refused(response: Promise<Response>): Promise<[number, string]> {
    const { status, json } = await response.then(async (got) => ({
      status: got.status,
      json: (await got.json()) as { error: { message: string } },
    }));
    return [status, json.error.message];
  }

  for (const database of databases) {
    describe(`live backends, on ${database}`, () => {
      it('the list comes in pages', async () => {
        const owner = await (await startTestServer({ database })).join();
        const read = async (query: string) =>
          (await (await owner(`${root}?${query}`)).json()) as {
            data: BackendView[];
            next: string | null;
          };
        const { data: all, next } = await read('limit=500');
        assert(all.length > 4 && next === null);
        const limit = all.length - 2;
        const first = await read(`limit=${limit}`);
        const second = await read(`limit=${limit}&before=${first.next}`);
        const ids = [...first.data, ...second.data].map(({ id }) => id);
        assert.deepEqual([first.data.length, second.data.length, second.next], [limit, 2, null]);
        assert.deepEqual(
          ids,
          all.map(({ id }) => id),
        );
        assert.equal((await owner(`${root}?before=x`)).status, 400);
      });

      it('an added backend serves at once, with its key, headers and model name, also after a restart', async () => {
        const upstream = await startUpstream({ apiKey });
        const server = await startTestServer({ database });
        const owner = await server.join();
        const before = await list(owner);
        assert.deepEqual(
          before.map(({ kind, source, name }) => [kind, source, name]),
          [['stand-in', 'builtin', 'builtin']],
        );
        const added = await owner(root, {
          json: newBackend(upstream, {
            api_key: apiKey,
            headers: { 'x-team': 'top-secret-team' },
            weight: 2,
            concurrency: 8,
          }),
        });
        const text = await added.text();
        assert.equal(added.status, 200, text);
        assert(!text.includes(apiKey) && !text.includes('top-secret-team'));
        const view = JSON.parse(text) as BackendView;
        assert.deepEqual(
          [view.id, view.kind, view.source, view.weight, view.concurrency, view.health],
          [`${model}/first`, 'upstream', 'live', 2, 8, 'healthy'],
        );

        assert.equal(await servedBy(server), 'first');
        const [request] = upstream.requests;
        assert.equal(request?.headers.authorization, `Bearer ${apiKey}`);
        assert.equal(request?.headers['x-team'], 'top-secret-team');
        assert.equal(request?.body.model, 'org/name');
        assert.equal((await list(owner))[0]?.requests_per_second, 0.017);

        const db = await openDatabase({
          url: server.databaseUrl,
          poolSize: 1,
          dataDir: server.dataDir,
        });
        const stored = JSON.stringify(await db.selectFrom('backends').selectAll().execute());
        const events = await db.selectFrom('audit_events').selectAll().execute();
        await db.destroy();
        assert(stored.includes('org/name') && !stored.includes(apiKey));
        assert(!stored.includes('top-secret-team'));
        const event = events.find(({ action }) => action === 'backend.created');
        assert.equal(event?.resource_id, `${model}/first`);
        assert(!event?.details.includes(apiKey));

        await server.stop();
        const again = await startTestServer({ database, on: server, presetApiKey: server.key });
        assert.equal(await servedBy(again), 'first');
        assert.equal(upstream.requests.at(-1)?.headers.authorization, `Bearer ${apiKey}`);
      });

      it('a drained backend gets no new request until it is resumed, and a removed one finishes its own', async () => {
        const slow = await startUpstream({ eventDelayMs: 30, words: 40 });
        const second = await startUpstream();
        const server = await startTestServer({ database });
        const owner = await server.join();
        await owner(root, { json: newBackend(slow) });
        await owner(root, { json: newBackend(second, { name: 'second' }) });
        const change = (name: string, json: object) =>
          owner(`${root}/${model}/${name}`, { method: 'PATCH', json });

        assert.equal((await change('second', { draining: true })).status, 200);
        const running = await server.fetch('/v1/chat/completions', {
          json: { model, messages, stream: true, max_tokens: 40 },
        });
        assert.equal(running.headers.get('x-served-by'), 'first');
        const [busy] = await list(owner);
        assert.equal(busy?.outstanding, 1);
        await change('first', { draining: true });
        await change('second', { draining: false });
        assert.equal(await servedBy(server), 'second');

        assert.equal((await owner(`${root}/${model}/first`, { method: 'DELETE' })).status, 200);
        assert.deepEqual(
          (await list(owner)).map(({ name, draining }) => [name, draining]),
          [
            ['second', false],
            ['first', true],
          ],
        );
        const text = await running.text();
        assert.match(text, /"finish_reason":"(stop|length)"/);
        assert.match(text, /\[DONE\]\s*$/);
        await until('it is gone', async () => (await list(owner)).length === 1);
        await until('it is over', () => slow.requests[0]?.state !== 'running');

        const changed = (await (
          await change('second', { weight: 5, concurrency: 3 })
        ).json()) as BackendView;
        assert.deepEqual([changed.weight, changed.concurrency], [5, 3]);
        const unlimited = (await (
          await change('second', { concurrency: null })
        ).json()) as BackendView;
        assert.deepEqual([unlimited.weight, unlimited.concurrency], [5, null]);
        const log = (await (await owner('/dashboard/api/audit-events')).json()) as {
          data: { action: string; resource_id: string }[];
        };
        assert.deepEqual(
          log.data
            .filter(({ action }) => action.startsWith('backend.'))
            .map(({ action }) => action),
          [
            'backend.changed',
            'backend.changed',
            'backend.removed',
            'backend.resumed',
            'backend.drained',
            'backend.drained',
            'backend.created',
            'backend.created',
          ],
        );
      });

      it('a drained backend of the file stays drained after a restart, and is changed only in the file', async () => {
        const upstream = await startUpstream();
        const config = {
          models: { catalog: { [model]: { backends: [{ name: 'filed', url: upstream.url }] } } },
        };
        const server = await startTestServer({ database, config });
        const owner = await server.join();
        const path = `${root}/${model}/filed`;
        const [view] = await list(owner);
        assert.deepEqual(
          [view?.source, view?.upstream_model, view?.server, view?.draining],
          ['file', model, 'openai', false],
        );
        assert.deepEqual(await refused(owner(path, { method: 'DELETE' })), [
          409,
          `${model}/filed comes from the file and is removed there, under models.catalog.`,
        ]);
        assert.equal(
          (await refused(owner(path, { method: 'PATCH', json: { weight: 2 } })))[0],
          409,
        );
        assert.equal(
          (await owner(path, { method: 'PATCH', json: { draining: true } })).status,
          200,
        );
        await server.stop();
        const again = await startTestServer({ database, config, on: server });
        const backends = await list(again.withCookie(owner.cookie));
        assert.deepEqual(
          backends.map(({ name, draining }) => [name, draining]),
          [['filed', true]],
        );
      });

      it('missing roles, unknown models and taken names are refused with the reason', async () => {
        const upstream = await startUpstream();
        const server = await startTestServer({ database });
        const owner = await server.join();
        const body = newBackend(upstream);
        const invitation = await owner('/dashboard/api/invitations', { json: { role: 'member' } });
        const { link } = (await invitation.json()) as { link: string };
        const member = await server.joinBy(link, 'member@example.com');
        assert.equal((await member(root)).status, 200);
        for (const path of [root, `${root}/check`]) {
          assert.equal((await member(path, { json: body })).status, 403);
        }
        const one = `${root}/${model}/first`;
        assert.equal((await member(one, { method: 'PATCH', json: {} })).status, 403);
        assert.equal((await member(one, { method: 'DELETE' })).status, 403);
        assert.equal((await server.fetch(root)).status, 403);
        assert.equal((await fetch(`${server.url}${root}`)).status, 401);

        const post = (changes: object) => refused(owner(root, { json: { ...body, ...changes } }));
        const [status, message] = await post({ model: 'hermes3-8c' });
        assert.equal(status, 404);
        assert.match(message, /Did you mean hermes3-8b\? .*models\.catalog/);
        for (const wrong of [
          { url: 'ftp://x' },
          { url: 'http://me:pw@x/v1' },
          { url: 'http://x:99999/v1' },
          { name: 'a/b' },
          { api_key: 'two words' },
          { headers: { 'x-a': 'b\r\nc' } },
          { weight: 0 },
          { concurrency: 0 },
          { server: 'other' },
          { extra: 1 },
        ]) {
          assert.equal((await post(wrong))[0], 400, JSON.stringify(wrong));
        }
        assert.equal((await post({ name: 'builtin' }))[0], 409);
        assert.equal((await owner(root, { json: body })).status, 200);
        assert.deepEqual(await post({}), [409, `A backend of ${model} is called first already.`]);
        assert.equal((await refused(owner(`${root}/${model}/none`, { method: 'DELETE' })))[0], 404);
        const standIn = `${root}/lfm-40b/builtin`;
        assert.equal((await refused(owner(standIn, { method: 'DELETE' })))[0], 409);
        const drain = { method: 'PATCH', json: { draining: true } };
        assert.equal((await refused(owner(standIn, drain)))[0], 409);
      });
    });
  }

  describe('backends', () => {
    it('every model of the catalog has a row', async () => {
      const server = await startTestServer();
      const owner = await server.join();
      const { data } = (await (await owner(root)).json()) as { data: BackendView[] };
      assert.equal(data.length, 13);
      const { data: models } = (await (await server.fetch('/v1/models')).json()) as {
        data: { id: string }[];
      };
      assert.equal(models.length, 12);
      for (const { id } of models) assert(data.some((backend) => backend.model === id));
    });

    it('without a stand-in, only models with a backend are listed and answer', async () => {
      const upstream = await startUpstream();
      const server = await startTestServer({ config: { inference: { stand_in: false } } });
      const owner = await server.join();
      const ids = async (path: string) =>
        ((await (await server.fetch(path)).json()) as { data: { id: string }[] }).data.map(
          ({ id }) => id,
        );
      assert.deepEqual(await ids('/v1/models'), []);
      assert.deepEqual(await refused(chat(server)), [
        503,
        `No backend serves ${model}. Ask an owner of this server to add one or to deploy the model.`,
      ]);
      await owner(root, { json: newBackend(upstream) });
      assert.deepEqual(await ids('/v1/models'), [model]);
      assert.equal(await servedBy(server), 'first');
      const [status] = await refused(owner(`${root}/${model}/stand-in`, { method: 'POST' }));
      assert.equal(status, 409);
    });

    it('servers on one database follow each other', { skip: noPostgres }, async () => {
      const upstream = await startUpstream({ apiKey });
      const { url, drop } = await createDatabase('postgres');
      after(drop);
      const config = {
        database: { url },
        secret_key: Buffer.alloc(32, 7).toString('base64'),
      };
      const clock = createRunningClock();
      const one = await startTestServer({ clock, config });
      const owner = await one.join();
      const other = await startTestServer({ clock, config, presetApiKey: one.key });
      assert.equal(await servedBy(other), 'builtin');
      await owner(root, { json: newBackend(upstream, { api_key: apiKey }) });
      await clock.until('the other has it', async () => (await servedBy(other)) === 'first');
      await owner(`${root}/${model}/first`, { method: 'DELETE' });
      await clock.until('the other lets it go', async () => (await chat(other)).status === 503);
      await owner(`${root}/${model}/stand-in`, { method: 'POST' });
      await clock.until('the stand-in is back', async () => (await servedBy(other)) === 'builtin');
    });

    it('a backend sealed with another key is not used, and can be removed', async () => {
      const upstream = await startUpstream({ apiKey });
      const server = await startTestServer();
      const owner = await server.join();
      await owner(root, { json: newBackend(upstream, { api_key: apiKey }) });
      await server.stop();
      const config = { secret_key: Buffer.alloc(32, 9).toString('base64') };
      const again = await startTestServer({ config, on: server, presetApiKey: server.key });
      const person = again.withCookie(owner.cookie);
      assert.deepEqual(await list(person), []);
      const path = `${root}/${model}/first`;
      assert.equal((await person(path, { method: 'DELETE' })).status, 200);
      assert.equal((await person(path, { method: 'DELETE' })).status, 404);
      assert.equal((await person(root, { json: newBackend(upstream) })).status, 200);
    });

    it('a configured fallback serves requests that need more context, under its own name', async () => {
      const upstream = await startUpstream();
      const backends = [{ name: 'small', url: upstream.url }];
      const server = await startTestServer({
        config: {
          models: {
            catalog: {
              small: { backends, context_fallback: { above: 1_000, to: 'large' } },
              large: { backends: [{ name: 'large', url: upstream.url, model: 'org/large' }] },
            },
          },
        },
      });
      const ask = async (content: string) => {
        const json = { model: 'small', messages: [{ role: 'user', content }], max_tokens: 5 };
        const response = await server.fetch('/v1/chat/completions', { json });
        const { model: served } = (await response.json()) as { model: string };
        return [served, response.headers.get('x-served-by')];
      };
      assert.deepEqual(await ask('Hi'), ['small', 'small']);
      assert.deepEqual(await ask('a word '.repeat(2_000)), ['large', 'large']);
      assert.equal(upstream.requests.at(-1)?.body.model, 'org/large');
    });

    it('a check reports whether the server responds and has the model, and adds nothing', async () => {
      const upstream = await startUpstream({ apiKey });
      const server = await startTestServer();
      const owner = await server.join();
      const check = async (changes: object) =>
        (await (
          await owner(`${root}/check`, {
            json: newBackend(upstream, { api_key: apiKey, ...changes }),
          })
        ).json()) as { ok: boolean; message: string; models: string[]; latency_ms: number };
      const fine = await check({});
      assert.deepEqual([fine.ok, fine.models], [true, ['org/name']]);
      const wrong = await check({ upstream_model: 'org/other' });
      assert.equal(wrong.ok, false);
      assert.match(wrong.message, /has no model org\/other\. It has: org\/name\./);
      const denied = await check({ api_key: 'sk-wrong-key' });
      assert.equal(denied.ok, false);
      assert(!denied.message.includes('sk-wrong-key'));
      assert.equal((await check({ url: 'http://127.0.0.1:9/v1' })).ok, false);
      assert.equal((await list(owner))[0]?.kind, 'stand-in');
    });

    it('a dead backend is ejected by probes, shown in the metrics, and used again once it is back', async () => {
      const upstream = await startUpstream();
      const health = {
        probe_seconds: 0.05,
        eject_after: 2,
        eject_seconds: 60,
        max_eject_seconds: 60,
      };
      const server = await startTestServer({ config: { models: { health } } });
      const owner = await server.join();
      await owner(root, { json: newBackend(upstream) });
      const state = async () => (await list(owner))[0]?.health;
      await until('it was probed', async () => (await list(owner))[0]?.checked_at);
      assert.equal(await state(), 'healthy');
      upstream.behave('dies-at-once');
      await until('it is ejected', async () => (await state()) === 'ejected');
      const [view] = await list(owner);
      assert.match(view?.reason ?? '', /Health check failed/);
      assert(view?.retry_at !== null);
      const metrics = await (await fetch(`${server.url}/metrics`)).text();
      const labels = `{gen_ai_request_model="${model}",millrace_backend="first"}`;
      assert(metrics.includes(`millrace_backend_health${labels} 0`));
      assert(metrics.includes(`millrace_backend_ejections_total${labels} 1`));
      assert(metrics.includes(`millrace_backend_outstanding_requests${labels} 0`));
      upstream.behave('answers');
      await until('it is on probation', async () => (await state()) === 'probation');
      assert.equal(await servedBy(server), 'first');
      assert.equal(await state(), 'healthy');
    });
  });
});
