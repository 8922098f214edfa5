// Background responses on both databases, with several servers: they run once, end once, and their events are followed
// from anywhere. What generates is scripted; background-http.test.ts runs the real pipeline.

import assert from 'node:assert';
import { after, before, describe, type TestContext, test } from 'node:test';
import { pino } from 'pino';
import type { Payer, Reservation } from '#accounts/limits/request-limiter.ts';
import type { Amount, Ticket } from '#accounts/limits/store.ts';
import { openDatabase } from '#db/open.ts';
import type { Database } from '#db/tables/tables.ts';
import {
  BackgroundResponses,
  type Generate,
} from '#inference/apis/responses/background/background.ts';
import { createFollowers } from '#inference/apis/responses/background/follow.ts';
import { RunRows } from '#inference/apis/responses/background/run-rows.ts';
import type { ResponseObject } from '#inference/apis/responses/schema.ts';
import { ResponseStore } from '#inference/apis/responses/stored/store.ts';
import { newId } from '#lib/ids.ts';
import { toBytes } from '#lib/memory/byte-string.ts';
import { createHandClock } from '#test/support/clock.ts';
import { createDatabase, databases, stopOwnPostgres } from '#test/support/databases.ts';
import { makeFolder } from '#test/support/process.ts';
import { refuses, responseObject, say } from '#test/support/stored-responses.ts';
import { until } from '#test/support/until.ts';

const log = pino({ level: 'silent' });
const options = { keepMs: 1e9, maxBytes: 2 ** 30, maxContextBytes: 2 ** 20 };
const never = () => new Promise<never>(() => {});
const noSignal = new AbortController().signal;
const nothingReserved: Reservation = {
  headers: null,
  ticket: null,
  maxCostNano: Number.POSITIVE_INFINITY,
  settle() {},
  leave() {},
};
const unlimited = { takeOver: async (_payer: Payer, _ticket: Ticket | null) => nothingReserved };
const toKeyId = (accountId: string) => `key-${accountId}`;

describe('background responses', () => {
  after(stopOwnPostgres);

  for (const database of databases) {
    describe(`background responses on ${database}`, () => {
      const clock = createHandClock();
      const ends: (() => Promise<void>)[] = [];
      let db: Database;
      before(async () => {
        const { url, drop } = await createDatabase(database);
        db = await openDatabase({ url, poolSize: 4, dataDir: makeFolder() });
        ends.push(() => db.destroy(), drop);
      });
      after(async () => {
        for (const end of ends) await end();
      });

      /** Turns the clock again and again: a lease that is renewed only now waits for the next turn. */
      const turnUntil = (what: string, check: () => boolean) =>
        until(what, () => {
          clock.turn(5_001);
          return check();
        });

      /** A server. Without `generate` it begins nothing. A dead one never ends its runs, as if it had been killed. */
      function startServer(
        test: TestContext,
        generate: Generate | null,
        { maxLive = 10, isDead = false, limits = unlimited } = {},
      ) {
        const store = new ResponseStore(db, clock, options);
        const rows = new RunRows(db, clock, { runner: newId(), singleServer: false });
        const parts = { store, rows, limits, generate: generate ?? never, clock, log };
        const background = new BackgroundResponses(parts, maxLive);
        if (generate === null) background.stop();
        if (!isDead) test.after(() => background.drain(0));
        const followers = createFollowers(store, rows, background);
        const follow = async (accountId: string, id: string, after = -1) => {
          let events = '';
          const run = await followers.open(accountId, id, after);
          await run((more) => {
            events += more;
            return undefined;
          }, noSignal);
          return parse(events);
        };
        return { store, rows, background, follow };
      }
      type Server = ReturnType<typeof startServer>;

      async function newAccount() {
        const id = newId();
        const row = { id, name: 'A', created_at: 0 } as never;
        await db.insertInto('accounts').values(row).execute();
        const key = { id: toKeyId(id), account_id: id, label: '', hash: id, hint: '' };
        const values = { ...key, scopes: '[]', created_at: 0 } as never;
        await db.insertInto('api_keys').values(values).execute();
        return { accountId: id };
      }
      async function submit(
        { store, background }: Server,
        { accountId, ...reserved }: { accountId: string } & Partial<Reservation>,
      ) {
        const request = { model: 'm', input: 'go', background: true };
        const place = await store.readContext(accountId, request);
        const queued: ResponseObject = {
          ...responseObject({ output: [] }),
          status: 'queued',
          background: true,
        };
        const caller = { accountId, keyId: toKeyId(accountId), userId: null };
        const reservation = { ...nothingReserved, ...reserved };
        await background.submit(place, { caller, reservation }, request, queued);
        return queued.id;
      }
      const statusOf = async ({ store }: Server, accountId: string, id: string) =>
        (await store.get(accountId, id)).status;
      const countRuns = async () =>
        (await db.selectFrom('response_runs').selectAll().execute()).length;

      test('it runs without its client, and its events are followed from any of them on', async (t) => {
        const gate = Promise.withResolvers<void>();
        const server = startServer(t, async (run, delivery) => {
          assert.deepEqual(run.items[0]?.content, [{ type: 'input_text', text: 'go' }]);
          const stream = delivery.openStream();
          for (let at = 0; at < 5; at++) stream.pass(event('response.output_text.delta', at, 'ü'));
          await gate.promise;
          const response = { ...responseObject({ output: [say('done')] }), id: run.id };
          await run.save({ ...response, background: true });
          stream.pass(event('response.completed', 5));
          stream.end();
        });
        const { accountId } = await newAccount();
        const id = await submit(server, { accountId });
        const elsewhere = startServer(t, null);
        const seen = [server.follow(accountId, id), elsewhere.follow(accountId, id, 2)];
        await until('events are written', () => server.rows.hasEvents(id));
        assert.equal(await statusOf(elsewhere, accountId, id), 'in_progress');
        gate.resolve();
        const [all, rest] = await Promise.all(seen);
        assert.deepEqual(
          all?.map(({ sequence_number }) => sequence_number),
          [0, 1, 2, 3, 4, 5],
        );
        assert.deepEqual(
          rest?.map(({ sequence_number }) => sequence_number),
          [3, 4, 5],
        );
        assert.equal(all?.[0]?.delta, 'ü');
        assert.equal(await statusOf(elsewhere, accountId, id), 'completed');
        const late = await elsewhere.follow(accountId, id, 4);
        assert.deepEqual(
          late.map(({ type }) => type),
          ['response.completed'],
        );
        assert.deepEqual(await elsewhere.follow(accountId, id, 5), []);
        assert.equal(await countRuns(), 0);
        clock.turn(3_600_001);
        await server.rows.sweep();
        const gone = await refuses(400, () => server.follow(accountId, id));
        assert.match(gone.message, /no longer kept/);
      });

      test('responses of a revoked key end, queued or not, and give back what they reserved', async (t) => {
        const begun = Promise.withResolvers<void>();
        const aborted = Promise.withResolvers<void>();
        const server = startServer(t, async (_run, { signal }) => {
          signal.addEventListener('abort', () => aborted.resolve());
          begun.resolve();
          await aborted.promise;
        });
        const idle = startServer(t, null);
        const { accountId } = await newAccount();
        let settled = 0;
        const settle = () => {
          settled++;
        };
        const running = await submit(server, { accountId, settle });
        await begun.promise;
        const queued = await idle.background.cancel(
          accountId,
          await submit(idle, { accountId, settle }),
        );
        assert.equal(queued.status, 'cancelled');
        assert.equal(settled, 1, 'a cancelled response gives back what it reserved');
        await db
          .updateTable('api_keys')
          .set({ revoked_at: 1 })
          .where('account_id', '=', accountId)
          .execute();
        const late = await submit(idle, { accountId, leave: settle });
        server.background.wake();
        await aborted.promise;
        await until('both have ended', async () => (await countRuns()) === 0);
        for (const id of [running, late]) {
          const { status, error } = await server.store.get(accountId, id);
          assert.deepEqual([status, error?.code], ['failed', 'caller_revoked']);
        }
        await idle.background.drain(0);
        await until('all was given back', () => settled === 3);
      });

      test('a response of a killed server fails once, and a queued one runs once elsewhere', async (t) => {
        const begun: string[] = [];
        const dead = startServer(
          t,
          (run, delivery) => {
            begun.push(run.id);
            delivery.openStream().pass(event('response.created', 0));
            return never();
          },
          { isDead: true },
        );
        const { accountId } = await newAccount();
        const lost = await submit(dead, { accountId });
        await until('its first event is written', () => dead.rows.hasEvents(lost));
        dead.background.stop();
        const queued = await submit(dead, { accountId });
        await db
          .updateTable('response_runs')
          .set({ runner: newId(), lease_until: clock.now() })
          .where('response_id', '=', lost)
          .execute();
        clock.turn(30_001);
        const generate: Generate = async (run) => {
          begun.push(run.id);
          await run.save({ ...responseObject({ output: [] }), id: run.id, background: true });
        };
        const heirs = [startServer(t, generate), startServer(t, generate)];
        for (const { background } of heirs) background.wake();
        await until('both have ended', async () => (await countRuns()) === 0);
        const [heir] = heirs as [Server];
        const failed = await heir.store.get(accountId, lost);
        assert.equal(failed.status, 'failed');
        assert.match(failed.error?.message ?? '', /was lost/);
        assert.equal(await statusOf(heir, accountId, queued), 'completed');
        assert.deepEqual(begun, [lost, queued], 'neither was begun twice');
        const events = await heir.follow(accountId, lost);
        assert.deepEqual(
          events.map(({ type }) => type),
          ['response.created', 'response.failed'],
        );
        assert.equal(events[1]?.sequence_number, 1);
      });

      test('a server that runs the response of another takes over what it reserved', async (t) => {
        const ticket = { id: 'reserved', tokens: 5, costNano: 7 };
        const done: unknown[] = [];
        const first = startServer(t, null);
        const { accountId } = await newAccount();
        const id = await submit(first, {
          accountId,
          ticket,
          settle: () => done.push('settled by the first'),
          leave: () => done.push('left by the first'),
        });
        const limits = {
          async takeOver(payer: Payer, taken: Ticket | null) {
            done.push([payer, taken]);
            return { ...nothingReserved, settle: (used: Amount) => done.push(used) };
          },
        };
        const used = { tokens: 9, costNano: 11 };
        const second = startServer(
          t,
          async (run) => {
            run.reservation.settle(used);
            await run.save({ ...responseObject({ output: [] }), id: run.id, background: true });
          },
          { limits },
        );
        second.background.wake();
        await until('it has ended', async () => (await countRuns()) === 0);
        assert.equal(await statusOf(first, accountId, id), 'completed');
        assert.deepEqual(done.slice(0, 2), [
          [{ accountId, keyId: toKeyId(accountId) }, ticket],
          used,
        ]);
        await first.background.drain(0);
        assert.deepEqual(done.at(-1), 'left by the first');
        assert(!done.includes('settled by the first'));
      });

      test('a server that starts holds what queued responses have reserved, and leaves it if they are cancelled', async (t) => {
        const ticket = { id: 'reserved', tokens: 5, costNano: 7 };
        const { accountId } = await newAccount();
        const killed = startServer(t, null, { isDead: true });
        const ids = [
          await submit(killed, { accountId, ticket }),
          await submit(killed, { accountId }),
        ];
        const held: unknown[] = [];
        const done: string[] = [];
        const limits = {
          async takeOver({ accountId: payer }: Payer, taken: Ticket | null) {
            if (payer === accountId) held.push(taken);
            const settle = () => done.push('settled');
            return { ...nothingReserved, settle, leave: () => done.push('left') };
          },
        };
        const heir = startServer(t, null, { limits });
        await heir.background.adopt();
        await heir.background.adopt();
        assert.equal(held.length, 2, 'each is held once');
        assert.deepEqual(new Set(held), new Set([ticket, null]));
        for (const id of ids) await heir.background.cancel(accountId, id);
        assert.deepEqual(done, ['left', 'left']);
      });

      test('it is cancelled from another server, which aborts it where it runs', async (t) => {
        let isAborted = false;
        const server = startServer(t, async (_run, delivery) => {
          delivery.openStream().pass(event('response.created', 0));
          await new Promise((stop) => delivery.signal.addEventListener('abort', stop));
          isAborted = true;
        });
        const other = startServer(t, null);
        const { accountId } = await newAccount();
        const id = await submit(server, { accountId });
        await until('it runs', () => server.rows.hasEvents(id));
        assert.equal((await other.background.cancel(accountId, id)).status, 'cancelled');
        await turnUntil('it is aborted', () => isAborted);
        assert.equal((await server.background.cancel(accountId, id)).status, 'cancelled');
        const events = await other.follow(accountId, id);
        assert.deepEqual(
          events.map(({ type }) => type),
          ['response.created', 'response.cancelled'],
        );
        const { accountId: stranger } = await newAccount();
        await refuses(404, () => other.background.cancel(stranger, id));
        await refuses(404, () => other.follow(stranger, id));
      });

      test('only background responses are cancelled and followed', async (t) => {
        const server = startServer(t, null);
        const { accountId } = await newAccount();
        const turn = await server.store.openTurn(accountId, { input: 'x' });
        const plain = responseObject({ output: [] });
        await turn.save(plain);
        await refuses(400, () => server.background.cancel(accountId, plain.id));
        await refuses(400, () => server.follow(accountId, plain.id));
        const done = { ...responseObject({ output: [] }), background: true };
        await turn.save(done);
        const error = await refuses(400, () => server.background.cancel(accountId, done.id));
        assert.equal(error.message, 'Cannot cancel a completed response.');
      });

      test('what fails before its stream begins has failed, with the reason', async (t) => {
        const server = startServer(t, async (_run, delivery) => {
          delivery.fail(429, [], { error: { code: 'rate_limit_exceeded', message: 'Slow down.' } });
        });
        const { accountId } = await newAccount();
        const id = await submit(server, { accountId });
        const [event] = await server.follow(accountId, id);
        assert.equal(event?.type, 'response.failed');
        const { status, error } = await server.store.get(accountId, id);
        assert.deepEqual(
          [status, error],
          ['failed', { code: 'rate_limit_exceeded', message: 'Slow down.' }],
        );
      });

      test('an account has a bounded number of them at once', async (t) => {
        const server = startServer(
          t,
          (_run, { signal }) =>
            new Promise((stop) => signal.addEventListener('abort', () => stop())),
          { maxLive: 2 },
        );
        const { accountId } = await newAccount();
        const ids = [await submit(server, { accountId }), await submit(server, { accountId })];
        await assert.rejects(submit(server, { accountId }), /maximum/);
        await server.background.cancel(accountId, ids[0] ?? '');
        await submit(server, { accountId });
      });

      test('what a server left for longer than responses are kept fails, and holds up no other', async (t) => {
        const idle = startServer(t, null);
        const { accountId } = await newAccount();
        const left = [
          await submit(idle, { accountId }),
          await submit(idle, { accountId }),
        ] as const;
        const runner = { runner: newId(), lease_until: clock.now() };
        await db
          .updateTable('response_runs')
          .set(runner)
          .where('response_id', 'in', left)
          .execute();
        // Its server was killed after it had written the response, and before it ended the run.
        const ended = { ...responseObject({ output: [] }), id: left[1] as ResponseObject['id'] };
        await idle.store.complete(accountId, ended);
        clock.turn(options.keepMs + 1);
        const server = startServer(t, async (run) => {
          await run.save({ ...responseObject({ output: [] }), id: run.id, background: true });
        });
        const id = await submit(server, { accountId });
        await until(
          'it has ended',
          async () => (await statusOf(server, accountId, id)) === 'completed',
        );
        await server.store.sweep();
        for (const old of left) await refuses(404, () => server.store.get(accountId, old));
        assert.equal(await countRuns(), 0);
      });

      test('a deleted response is aborted where it runs', async (t) => {
        let isAborted = false;
        const begun = Promise.withResolvers<void>();
        const server = startServer(t, async (_run, { signal }) => {
          begun.resolve();
          await new Promise((stop) => signal.addEventListener('abort', stop));
          isAborted = true;
        });
        const { accountId } = await newAccount();
        const id = await submit(server, { accountId });
        await begun.promise;
        await server.store.remove(accountId, id);
        await turnUntil('it is aborted', () => isAborted);
        await refuses(404, () => server.store.get(accountId, id));
      });
    });
  }

  const event = (type: string, sequence_number: number, delta?: string) =>
    toBytes(`event: ${type}\ndata: ${JSON.stringify({ type, sequence_number, delta })}\n\n`);

  function parse(events: string): { type: string; sequence_number: number; delta?: string }[] {
    const blocks = Buffer.from(events, 'latin1').toString().split('\n\n').filter(Boolean);
    return blocks.map((block) => JSON.parse(block.split('\ndata: ')[1] ?? ''));
  }
});
