// What deployments cost.

import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { openExistingDatabase } from '#db/open.ts';
import { toCost } from '#deployments/cost/cost.ts';
import type { CostView } from '#deployments/ground/schema.ts';
import { createRunningClock } from '#test/support/clock.ts';
import { openTestDeployments, type TestDeployments } from '#test/support/deployments.ts';
import { type SessionFetch, startTestServer, type TestServer } from '#test/support/server.ts';
import { until } from '#test/support/until.ts';

const hour = 3_600_000;
const run = (from: number, to: number, hourly_cents = 0) => ({
  ...{ started_at: from * hour, seen_at: to * hour, hourly_cents },
});

describe('the cost of a deployment', () => {
  test('is the time of all replicas; without any, it saves', () => {
    const period = { since: 0, until: 10 * hour };
    const runs = [run(4, 5, 100), run(1, 3), run(2, 4, 200), run(8, 12, 50)];
    const { engineMs, machineCents, idleMs } = toCost(runs, period);
    assert.deepEqual([engineMs / hour, machineCents, idleMs / hour], [7, 600, 4]);
    assert.deepEqual(toCost([], period), { engineMs: 0, machineCents: 0, idleMs: 10 * hour });
    assert.equal(toCost([run(-5, -1), run(-1, 2)], period).engineMs, 2 * hour);
  });
});

describe('a deployment that ran', () => {
  const clock = createRunningClock();
  let server: TestServer;
  let owner: SessionFetch;
  let deployments: TestDeployments;
  before(async () => {
    server = await startTestServer({ clock });
    owner = await server.join();
    deployments = openTestDeployments(server, owner, clock);
  });
  const cost = async () => (await deployments.call<CostView>('GET', '/tested/cost')).data;

  test('shows how fast it answers', async () => {
    await deployments.create('tested', { env: { TOKENS: '60' } });
    assert.deepEqual([(await cost()).tokens_per_second, (await cost()).first_token_ms], [0, null]);
    const response = await deployments.chat({ stream: true });
    assert.match(await response.text(), /\[DONE\]/);
    const { tokens_per_second, first_token_ms } = await until(
      'its tokens are counted',
      async () => {
        const now = await cost();
        return now.first_token_ms === null ? undefined : now;
      },
    );
    assert.equal(tokens_per_second, 60 / 300);
    assert(Number.isInteger(first_token_ms));
    clock.turn(10 * 60_000);
    assert.deepEqual([(await cost()).tokens_per_second, (await cost()).first_token_ms], [0, null]);
    await deployments.removeAll();
  });

  test('does not take the time of a whole response for the time to its first token', async () => {
    await deployments.create('tested', { env: { TOKENS: '60' } });
    assert.equal((await deployments.chat()).status, 200);
    await until('its tokens are counted', async () => (await cost()).tokens_per_second > 0);
    assert.equal((await cost()).first_token_ms, null);
    await deployments.removeAll();
    clock.turn(10 * 60_000);
  });

  test('shows what it saved while it had no machine', async () => {
    await deployments.create('tested', { program: 'engine', runs_on: 'cpu_1x_general' });
    clock.turn(10 * hour);
    const { idle_hours, saved_dollars } = await cost();
    const response = await owner('/api/v1/instance-types');
    const { data } = (await response.json()) as {
      data: Record<string, { instance_type: { price_cents_per_hour: number } }>;
    };
    const cents = data.cpu_1x_general?.instance_type.price_cents_per_hour ?? 0;
    assert(idle_hours >= 10 && cents > 0);
    assert.equal(saved_dollars, (idle_hours * cents) / 100);
    await deployments.removeAll();
  });

  test('shows its tokens and its time, and the next server knows both', async () => {
    await deployments.create('tested', {});
    assert.equal((await deployments.chat()).status, 200);
    clock.turn(hour);
    await clock.until('an hour is counted', async () => (await cost()).engine_seconds >= 3_600);
    // A server that is killed now has written the hour.
    const db = await openExistingDatabase({ url: null, poolSize: 1, dataDir: server.dataDir });
    await clock.until('the hour is stored', async () => {
      const { started_at, seen_at } = await db
        .selectFrom('deployment_runs')
        .selectAll()
        .executeTakeFirstOrThrow();
      return seen_at - started_at >= hour;
    });
    await db.destroy();
    await until('its tokens are counted', async () => (await cost()).tokens === 4);
    await deployments.call('POST', '/tested/stop');
    await clock.until('it is stopped', async () => {
      const { replicas } = await deployments.show('tested');
      return replicas.length === 0;
    });
    const stopped = await cost();
    clock.turn(2 * hour);
    await server.stop();
    server = await startTestServer({ clock, on: server, presetApiKey: server.key });
    deployments = openTestDeployments(server, server.withCookie(owner.cookie), clock);
    const after = await cost();
    assert.equal(after.tokens, 4);
    assert(Math.abs(after.engine_seconds - stopped.engine_seconds) <= 1);
    assert.deepEqual([after.machine_dollars, after.dollars_per_million_tokens], [0, null]);
    assert(after.idle_hours >= 2 && after.idle_hours < 3);
    await deployments.removeAll();
  });
});
