// The cloud through a whole server: the dashboard's cookie on the public API, costs, reasons, live updates.

import assert from 'node:assert';
import { describe, test } from 'node:test';
import type { InstanceDetail, InstanceStatsResult, InstanceUsage } from '#cloud/schema.ts';
import { createHandClock } from '#test/support/clock.ts';
import { publicKey } from '#test/support/cloud/cloud.ts';
import { databases } from '#test/support/databases.ts';
import { type SessionFetch, startTestServer } from '#test/support/server.ts';
import { until } from '#test/support/until.ts';

async function launch(session: SessionFetch, key: object = { public_key: publicKey }) {
  const name = `laptop ${Object.keys(key)}`;
  await session('/api/v1/ssh-keys', { json: { name, ...key } });
  const response = await session('/api/v1/instance-operations/launch', {
    json: {
      region_name: 'us-west-1',
      instance_type_name: 'cpu_2x_general',
      ssh_key_names: [name],
    },
  });
  const { data } = (await response.json()) as { data: { instance_ids: string[] } };
  return data.instance_ids[0] as string;
}

for (const database of databases) {
  describe(`the dashboard's cloud on ${database}`, () => {
    test('tags of a running instance are replaced, announced and audited', async () => {
      const cloud = { driver: 'scripted', rate_limit: false } as const;
      const server = await startTestServer({ database, config: { cloud } });
      const session = await server.join();
      const id = await launch(session);
      const put = (json: unknown, at = id) =>
        session(`/dashboard/api/instances/${at}/tags`, { method: 'PUT', json });
      const tags = [
        { key: 'team', value: 'vision' },
        { key: 'spare', value: '' },
      ];
      assert.equal((await put({ tags })).status, 200);
      const read = async () => {
        const response = await session(`/api/v1/instances/${id}`);
        return ((await response.json()) as { data: { tags?: unknown } }).data.tags;
      };
      assert.deepEqual(await read(), tags);
      assert.equal((await put({ tags: [tags[0], tags[0]] })).status, 400);
      assert.equal((await put({ tags: [{ key: 'No', value: '' }] })).status, 400);
      assert.deepEqual(await read(), tags);
      assert.equal((await put({ tags: [] })).status, 200);
      assert.equal(await read(), undefined);
      assert.equal((await put({ tags }, 'f'.repeat(32))).status, 404);
      const events = await session('/dashboard/api/audit-events?action=instance.updated');
      const { data } = (await events.json()) as { data: { details: unknown }[] };
      assert.deepEqual(data.at(-1)?.details, { tags: ['team=vision', 'spare='] });
    });

    test('live figures are measured on demand, and the reason is said where they are not', async () => {
      const cloud = { driver: 'scripted', rate_limit: false } as const;
      const server = await startTestServer({ database, config: { cloud } });
      const session = await server.join();
      const id = await launch(session);
      const read = async (at = id) => {
        const response = await session(`/dashboard/api/instances/${at}/stats`);
        return { status: response.status, ...((await response.json()) as InstanceStatsResult) };
      };
      await until('it runs', async () => (await read()).data !== null);
      const { data, reason } = await read();
      assert.deepEqual(data?.network, { value: { received_bytes: 2048, sent_bytes: 1024 } });
      assert.deepEqual(data?.disk_bytes, { unavailable: 'Scripted machines have no disk.' });
      assert.equal(reason, null);
      assert.equal((await read('f'.repeat(32))).status, 404);
      const events = await session(`/dashboard/api/audit-events?resource_id=${id}`);
      const { data: logged } = (await events.json()) as { data: { action: string }[] };
      assert.deepEqual(
        logged.map(({ action }) => action),
        ['instance.created'],
      );
    });

    test('a type that can’t be launched has the reason', async () => {
      const cloud = { driver: 'scripted', rate_limit: false } as const;
      const server = await startTestServer({ database, config: { cloud } });
      const session = await server.join();
      const response = await session('/dashboard/api/launch-obstacles');
      const { data } = (await response.json()) as { data: Record<string, string> };
      assert.match(data.gpu_8x_h100_sxm5 ?? '', /^No host has this GPU\./);
      assert.equal(data.cpu_2x_general, undefined);
    });

    test('usage is seconds times price, within the requested period', async () => {
      const clock = createHandClock();
      const cloud = { driver: 'scripted', rate_limit: false } as const;
      const server = await startTestServer({ database, clock, config: { cloud } });
      const session = await server.join();
      const id = await launch(session);
      clock.turn(2 * 3_600_000);
      const usage = async (from: string, to: string) => {
        const response = await session(`/dashboard/api/usage/machines?from=${from}&to=${to}`);
        assert.equal(response.status, 200);
        return (await response.json()) as {
          data: InstanceUsage[];
          total: { seconds: number; cents: number };
        };
      };
      const all = await usage('2026-01-01T00:00:00Z', '2026-02-01T00:00:00Z');
      assert.equal(all.data.length, 1);
      assert.equal(all.data[0]?.instance_id, id);
      assert.equal(all.data[0]?.seconds, 7200);
      assert.equal(all.data[0]?.cents, 20);
      assert.deepEqual(all.total, { seconds: 7200, cents: 20 });
      const part = await usage('2026-01-01T00:30:00Z', '2026-01-01T01:00:00Z');
      assert.equal(part.data[0]?.seconds, 1800);
      assert.equal(part.data[0]?.cents, 5);
      await session('/api/v1/instance-operations/terminate', { json: { instance_ids: [id] } });
      await until('the instance is gone', async () => {
        clock.turn(500);
        const response = await session(`/api/v1/instances/${id}`);
        const { data } = (await response.json()) as { data?: { status: string } };
        return data?.status === 'terminated';
      });
      const ended = await usage('2026-01-01T00:00:00Z', '2026-02-01T00:00:00Z');
      clock.turn(24 * 3_600_000);
      const later = await usage('2026-01-01T00:00:00Z', '2026-02-01T00:00:00Z');
      assert.deepEqual(later.data, ended.data);
      const outside = await usage('2026-03-01T00:00:00Z', '2026-04-01T00:00:00Z');
      assert.deepEqual(outside.data, []);
      for (const end of ['2026-02-01T00:00:00Z', '2026-12-31T23:59:60Z']) {
        const wrong = await session(
          `/dashboard/api/usage/machines?from=2026-03-01T00:00:00Z&to=${end}`,
        );
        assert.equal(wrong.status, 400);
      }
    });

    test('usage of machines comes in pages, and its total covers them all', async () => {
      const clock = createHandClock();
      const cloud = { driver: 'scripted', rate_limit: false } as const;
      const server = await startTestServer({ database, clock, config: { cloud } });
      const session = await server.join();
      const ids = [await launch(session), await launch(session), await launch(session)];
      clock.turn(3_600_000);
      const span = 'from=2026-01-01T00:00:00Z&to=2026-02-01T00:00:00Z&limit=2';
      const read = async (before: string) => {
        const response = await session(`/dashboard/api/usage/machines?${span}${before}`);
        return (await response.json()) as {
          data: InstanceUsage[];
          next: string | null;
          total: { seconds: number; cents: number };
        };
      };
      const first = await read('');
      const second = await read(`&before=${first.next}`);
      const listed = [...first.data, ...second.data];
      assert.deepEqual([first.data.length, second.next], [2, null]);
      assert.deepEqual(new Set(listed.map(({ instance_id }) => instance_id)), new Set(ids));
      const seconds = listed.reduce((sum, usage) => sum + usage.seconds, 0);
      assert.deepEqual([first.total.seconds, second.total], [seconds, first.total]);
    });

    test('a key says whether it was generated here or pasted', async () => {
      const cloud = { driver: 'scripted', rate_limit: false } as const;
      const session = await (await startTestServer({ database, config: { cloud } })).join();
      const pasted = await launch(session);
      const generated = await launch(session, {});
      const response = await session('/dashboard/api/instances');
      const { data } = (await response.json()) as { data: InstanceDetail[] };
      const files = Object.fromEntries(data.map(({ id, has_key_file }) => [id, has_key_file]));
      assert.deepEqual(files, { [pasted]: false, [generated]: true });
      const read = async (query: string) => {
        const answer = await session(`/dashboard/api/instances?limit=1${query}`);
        return (await answer.json()) as { data: InstanceDetail[]; next: string | null };
      };
      const first = await read('');
      const second = await read(`&before=${first.next}`);
      const paged = [...first.data, ...second.data].map(({ id }) => id);
      assert.deepEqual(paged.sort(), [pasted, generated].sort());
      assert.equal(second.next, null);
    });

    test('the event stream reports changes as they happen, and ends when the server stops', async () => {
      const server = await startTestServer({
        database,
        config: { cloud: { driver: 'scripted', rate_limit: false } },
      });
      const session = await server.join();
      const head = await session('/dashboard/api/events', { method: 'HEAD' });
      assert([404, 405].includes(head.status), 'the answer to a HEAD would never end');
      const response = await session('/dashboard/api/events');
      assert.equal(response.headers.get('content-type'), 'text/event-stream; charset=utf-8');
      assert(response.body !== null);
      const id = await launch(session);
      let text = '';
      for await (const chunk of response.body) {
        text += Buffer.from(chunk as Uint8Array).toString();
        if (text.includes('"active"')) break;
      }
      assert.match(text, /^data: {"type":"ready"}\n\n/);
      assert(text.includes(`{"type":"instance","id":"${id}","status":"booting"}`));
      const details = await (await session('/dashboard/api/instances')).json();
      assert.equal((details as { data: { id: string }[] }).data[0]?.id, id);
      const log = await (await session(`/dashboard/api/instances/${id}/boot-log`)).json();
      assert.match((log as { data: string }).data, /booted/);
      const open = await session('/dashboard/api/events');
      await server.stop();
      for await (const _ of open.body ?? []);
    });

    test('machines continue after a restart of the server', async () => {
      const config = { cloud: { driver: 'scripted', rate_limit: false } } as const;
      const server = await startTestServer({ database, config });
      const session = await server.join();
      const id = await launch(session);
      await server.stop();
      const again = await startTestServer({ on: server, config });
      const same = again.withCookie(session.cookie);
      await until('the instance is active', async () => {
        const response = await same(`/api/v1/instances/${id}`);
        const { data } = (await response.json()) as { data: { status: string } };
        return data.status === 'active';
      });
    });

    test('the events and costs of machines need a session', async () => {
      const server = await startTestServer({ database });
      for (const path of ['events', 'instances', 'usage/machines']) {
        assert.equal((await server.fetch(`/dashboard/api/${path}`)).status, 403);
      }
    });
  });
}
