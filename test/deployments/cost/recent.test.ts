// How fast a deployment answered lately, from the rows of its requests.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { readRecent } from '#deployments/cost/cost-view.ts';
import { bothDatabases } from '#test/support/databases.ts';
import { accountId, endedRow, insertRows, openTestUsage } from '#test/support/usage/usage.ts';

const minute = 60_000;
const until = Date.UTC(2026, 0, 1, 12);
const period = { since: until - 5 * minute, until };

/** A stream of the deployment that began so many minutes ago. */
const stream = (minutesAgo: number, given: Parameters<typeof endedRow>[0] = {}) =>
  endedRow({ backend: 'tested-12345678', at: until - minutesAgo * minute, ...given });

for (const database of bothDatabases)
  describe(`the speed of a deployment with ${database}`, () => {
    test('counts the part of long streams that is recent, and those that still run', async () => {
      const { db, clock } = await openTestUsage(database);
      const account = { id: accountId, name: 'tested', created_at: clock.now() };
      await db.insertInto('accounts').values(account).execute();
      const none = await readRecent(db, 'tested', period);
      assert.deepEqual(none, { tokens_per_second: 0, first_token_ms: null });
      await insertRows(db, [
        stream(1, { completion_tokens: 300, first_token_ms: 100 }),
        // It ended a minute ago: four of its nine minutes are recent.
        stream(10, { completion_tokens: 900, duration_ms: 9 * minute, first_token_ms: 5_000 }),
        stream(10, { completion_tokens: 7_000, duration_ms: 4 * minute }),
        stream(50, { completion_tokens: 1_000, status: 'running', process: 'p' }),
        stream(2, { completion_tokens: 7_000, status: 'running', reserved: 1, process: 'p' }),
        stream(2, { completion_tokens: 100, first_token_ms: null }),
        stream(1, { completion_tokens: 7_000, backend: 'another-12345678' }),
      ]);
      const tokens = 300 + 400 + 100 + 100;
      const { tokens_per_second, first_token_ms } = await readRecent(db, 'tested', period);
      assert.equal(tokens_per_second.toFixed(6), (tokens / 300).toFixed(6));
      assert.equal(first_token_ms, 100);
    });
  });
