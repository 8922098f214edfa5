// What deployments without requests cost the database.

import assert from 'node:assert/strict';
import { StatementSync } from 'node:sqlite';
import { test } from 'node:test';
import { createRunningClock } from '#test/support/clock.ts';
import { startTestServer } from '#test/support/server.ts';
import { inSoak } from '#test/support/soak.ts';

/** Rounds of five seconds that are watched, and how often a query may be sent meanwhile. */
const rounds = inSoak(3, 4);
const maxTimes = rounds + 1;

test('with ten idle deployments, no query is sent more often than every five seconds', async (context) => {
  const one = { model: 'hermes3-8b', engine: 'builtin' } as const;
  const deployments = Object.fromEntries(
    Array.from({ length: 10 }, (_, at) => [`idle-${at}`, one] as const),
  );
  const clock = createRunningClock();
  await startTestServer({ clock, config: { deployments } });
  const counts = new Map<string, number>();
  const count = (sql: string) => counts.set(sql, (counts.get(sql) ?? 0) + 1);
  for (const name of ['all', 'get', 'iterate', 'run'] as const) {
    const execute = StatementSync.prototype[name] as (...values: unknown[]) => unknown;
    context.mock.method(
      StatementSync.prototype,
      name,
      function counted(this: StatementSync, ...values: unknown[]) {
        count(this.sourceSQL);
        return execute.apply(this, values);
      },
    );
  }
  const own = 'select * from "deployments" where "runner_id" = ? order by "created_at", "id"';
  await clock.until('its rows were read', async () => (counts.get(own) ?? 0) >= rounds);
  context.mock.restoreAll();
  const tooOften = [...counts].filter(([, times]) => times > maxTimes);
  assert.deepEqual(tooOften, []);
});
