// Whatever order requests open, progress and end in, and however the database fails between: each ended
// request has one row with what was last reported, and every sum is the sum of the rows.

import assert from 'node:assert';
import { describe, test } from 'node:test';
import type { UsageEntry } from '#accounts/usage/entry.ts';
import { bothDatabases } from '#test/support/databases.ts';
import { propertyRuns, propertySeed } from '#test/support/property-seed.ts';
import { createRandom } from '#test/support/random.ts';
import { type Failure, failing } from '#test/support/usage/failing-writer.ts';
import { assertAgreement, facts, openTestUsage } from '#test/support/usage/usage.ts';

interface Expected {
  entry: UsageEntry;
  tokens: number;
  status: string;
}

const runs = propertyRuns(15);
const steps = 150;

for (const database of bothDatabases) {
  describe(`usage under random failures on ${database}`, () => {
    test(`nothing is lost or counted twice (seed ${propertySeed}, ${runs} runs)`, async () => {
      for (let run = 0; run < runs; run++) await storm(propertySeed + run);
    });
  });

  async function storm(seed: number): Promise<void> {
    const random = createRandom(seed);
    const { db, clock, another, rows } = await openTestUsage(database);
    const failures: Failure[] = ['before', 'within', 'after'];
    let isCalm = false;
    const usage = another(
      {},
      failing(db, () => (isCalm || random(3) > 0 ? null : (failures[random(3)] ?? null))),
    );
    const expected = new Map<string, Expected>();
    const pick = () => [...expected.values()].filter(({ status }) => status === 'running');

    for (let step = 0; step < steps; step++) {
      const running = pick();
      const one = running[random(running.length)];
      switch (random(6)) {
        case 0:
        case 1: {
          const given = facts({ keyId: random(4) === 0 ? null : 'b'.repeat(32) });
          expected.set(given.id, { entry: usage.open(given), tokens: 0, status: 'running' });
          break;
        }
        case 2:
          if (one === undefined) break;
          one.tokens += random(9);
          one.entry.progress({ completionTokens: one.tokens, costNano: one.tokens * 7 });
          break;
        case 3: {
          if (one === undefined) break;
          const status = (['done', 'aborted', 'failed'] as const)[random(3)] ?? 'done';
          one.status = status;
          one.entry.close({ status, code: null, durationMs: random(5000) });
          break;
        }
        case 4:
          clock.turn(random(3) === 0 ? 3_600_000 * random(400) : random(1500));
          break;
        default:
          // Not always waited for: requests go on while a batch is under way.
          await Promise.race([usage.flush().catch(() => {}), random(2) === 0 ? undefined : never]);
      }
    }

    isCalm = true;
    await usage.flush();
    const written = await rows();
    for (const { id, status, completion_tokens } of written) {
      const { status: wanted, tokens } = expected.get(id) ?? {};
      assert.equal(status, wanted, `seed ${seed}`);
      if (status !== 'running') assert.equal(completion_tokens, tokens, `seed ${seed}`);
    }
    const ended = [...expected].filter(([, { status }]) => status !== 'running');
    const ids = new Set(written.map(({ id }) => id));
    assert.deepEqual(
      ended.filter(([id]) => !ids.has(id)),
      [],
      `seed ${seed}: rows are missing`,
    );
    await assertAgreement(db);
    await usage.stop();
    await assertAgreement(db);
    assert.equal((await rows()).length, expected.size);
  }
}

const never = new Promise<void>(() => {});
