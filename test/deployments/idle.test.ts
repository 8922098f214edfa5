// What deployments without requests cost the database.

import assert from 'node:assert/strict';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { test } from 'node:test';
import { startTestServer } from '#test/support/server.ts';
import { until } from '#test/support/until.ts';

/** Rounds of five seconds that are watched, and how often a query may be sent meanwhile. */
const rounds = 4;
const maxTimes = rounds + 1;

test('with ten idle deployments, no query is sent more often than every five seconds', async () => {
  const one = { model: 'hermes3-8b', engine: 'builtin' } as const;
  const deployments = Object.fromEntries(
    Array.from({ length: 10 }, (_, at) => [`idle-${at}`, one] as const),
  );
  await startTestServer({ config: { deployments } });
  const counts = new Map<string, number>();
  const count = (message: unknown) => {
    // The parameters are part of the text: times and leases differ.
    const sql = (message as { sql: string }).sql.replace(/'[^']*'|\d+(\.\d+)?/g, '?');
    counts.set(sql, (counts.get(sql) ?? 0) + 1);
  };
  subscribe('sqlite.db.query', count);
  const own = 'select * from "deployments" where "runner_id" = ? order by "created_at", "id"';
  await until('its rows were read', async () => (counts.get(own) ?? 0) >= rounds);
  unsubscribe('sqlite.db.query', count);
  const tooOften = [...counts].filter(([, times]) => times > maxTimes);
  assert.deepEqual(tooOften, []);
});
