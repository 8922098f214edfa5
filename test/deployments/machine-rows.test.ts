// Replicas on machines as rows, on both databases. Scripted machines answer with their id.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { DeploymentView } from '#deployments/ground/schema.ts';
import { createRunningClock } from '#test/support/clock.ts';
import { databases } from '#test/support/databases.ts';
import { type SessionFetch, startTestServer, type TestServer } from '#test/support/server.ts';

const model = 'hermes3-8b';

for (const database of databases) {
  describe(`machines of deployments on ${database}`, () => {
    const clock = createRunningClock();
    let server: TestServer;
    let owner: SessionFetch;
    async function call<Data = DeploymentView>(method: string, path: string, json?: unknown) {
      const response = await owner(`/api/v1${path}`, {
        method,
        headers: { origin: server.url },
        ...(json === undefined ? {} : { json }),
      });
      return ((await response.json()) as { data: Data }).data;
    }
    const create = (name: string, more = {}) =>
      call('POST', '/deployments', {
        ...{ name, model, engine: 'command', program: 'engine', runs_on: 'cpu_1x_general' },
        ...more,
      });
    const instances = async () =>
      (await call<{ id: string }[]>('GET', '/instances')).map(({ id }) => id);
    const chat = () =>
      server.fetch('/v1/chat/completions', {
        json: { model, messages: [{ role: 'user', content: 'Hi' }] },
      });

    test('one machine serves across restarts, and is terminated with its deployment', async () => {
      server = await startTestServer({ clock, database });
      owner = await server.join();
      await create('tested');
      const first = await (await clock.through(chat())).text();
      const [machine, ...others] = await instances();
      assert.deepEqual(others, []);
      assert(machine !== undefined && first.includes(machine), first);
      await server.stop();
      const { dataDir, databaseUrl, key } = server;
      server = await startTestServer({ clock, on: { dataDir, databaseUrl }, presetApiKey: key });
      owner = server.withCookie(owner.cookie);
      assert.match(await (await clock.through(chat())).text(), new RegExp(machine));
      assert.deepEqual(await instances(), [machine]);
      await call('DELETE', '/deployments/tested');
      await clock.until('the machine is gone', async () => (await instances()).length === 0);
    });

    test('a replica that rests is adopted as such, and wakes', async () => {
      server = await startTestServer({ clock, database });
      owner = await server.join();
      await create('tested');
      assert.equal((await clock.through(chat())).status, 200);
      await call('POST', '/deployments/tested', { ladder: { stopped: 1 } });
      const show = () => call('GET', '/deployments/tested');
      await clock.until('it rests', async () => (await show()).status === 'asleep');
      const before = await instances();
      await server.stop();
      const { dataDir, databaseUrl, key } = server;
      server = await startTestServer({ clock, on: { dataDir, databaseUrl }, presetApiKey: key });
      owner = server.withCookie(owner.cookie);
      const { status, replicas } = await show();
      assert.deepEqual([status, replicas.map(({ state }) => state)], ['asleep', ['stopped']]);
      assert.match(
        await (await clock.through(chat())).text(),
        new RegExp(before[0] ?? 'a machine'),
      );
      assert.deepEqual(await instances(), before);
      assert.equal((await show()).status, 'ready');
      await call('DELETE', '/deployments/tested');
      await clock.until('the machine is gone', async () => (await instances()).length === 0);
    });

    test('a copy of weights to the host is shown, and is not part of the start', async () => {
      server = await startTestServer({ clock, database });
      owner = await server.join();
      await create('copies', { source: server.dataDir, start_seconds: 4, min: 1 });
      const show = () => call('GET', '/deployments/copies');
      await clock.until('the copy is shown', async () =>
        /^copying weights to .*, \d+ %$/.test((await show()).replicas[0]?.progress ?? ''),
      );
      assert.equal((await clock.through(chat())).status, 200);
      assert.equal((await show()).reason, null);
    });

    test('a used-up quota is the reason of the failure', async () => {
      server = await startTestServer({
        clock,
        database,
        config: { cloud: { instances_per_account: 1 } },
      });
      owner = await server.join();
      await create('first');
      assert.equal((await clock.through(chat())).status, 200);
      await call('DELETE', '/deployments/first');
      await clock.until('the machine is gone', async () => (await instances()).length === 0);
      await create('second');
      await call('POST', '/deployments/second', { min: 2, max: 2 });
      await clock.until('the reason is said', async () =>
        /Quota exceeded/.test((await call('GET', '/deployments/second')).reason ?? ''),
      );
      assert.equal((await instances()).length, 1);
      assert.equal((await clock.through(chat())).status, 200);
    });
  });
}
