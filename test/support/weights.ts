// Local weights without a server: a database, a folder, a hub, and a person who may pull.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';
import { pino } from 'pino';
import { createAudit } from '#accounts/audit/audit.ts';
import type { SessionPrincipal } from '#accounts/principal.ts';
import { openDatabase } from '#db/open.ts';
import type { Database } from '#db/tables/tables.ts';
import { createCatalog } from '#inference/models/catalog.ts';
import { type LocalWeights, openWeights, type WeightsOptions } from '#inference/weights/open.ts';
import type { PullWithFiles } from '#inference/weights/pull-rows.ts';
import { systemClock } from '#lib/clock.ts';
import { newId } from '#lib/ids.ts';
import { createSeal, readSealKey } from '#lib/secrets/seal.ts';
import { createDatabase, type DatabaseKind, stopOwnPostgres } from './databases.ts';
import type { TestHub } from './hub.ts';
import { until } from './until.ts';

export interface TestWeights extends LocalWeights {
  readonly db: Database;
  readonly dataDir: string;
  readonly person: SessionPrincipal;
  /** Resolves to the pull once it is neither waiting nor running. */
  ended(id: string): Promise<PullWithFiles>;
}

export type TestWeightsOptions = Partial<WeightsOptions> & {
  database?: DatabaseKind;
  /** Open the database and folder of an earlier instance again. */
  on?: TestWeights;
};

const cleanups: (() => Promise<unknown>)[] = [];

after(async () => {
  for (const cleanup of cleanups.reverse()) await cleanup();
  await stopOwnPostgres();
});

export async function openTestWeights(
  hub: TestHub,
  { database = 'sqlite', on, ...options }: TestWeightsOptions = {},
): Promise<TestWeights> {
  const { db, dataDir, person } = on ?? (await createSurroundings(database));
  const weights = await openWeights(
    {
      db,
      clock: systemClock,
      log: pino({ level: 'silent' }),
      audit: createAudit(systemClock),
      seal: createSeal(() => readSealKey(null, dataDir)),
      catalog: createCatalog(),
    },
    {
      dataDir,
      hubUrl: hub.url,
      hubToken: null,
      concurrency: 2,
      diskReserveBytes: 0,
      beatMs: 20,
      retry: { delayMs: 1, maxDelayMs: 5, maxFailures: 4 },
      ...options,
    },
  );
  let stopped: Promise<void> | undefined;
  const stop = () => {
    stopped ??= weights.stop();
    return stopped;
  };
  cleanups.push(stop);
  weights.start();
  return {
    ...weights,
    stop,
    db,
    dataDir,
    person,
    ended: (id) =>
      until('the pull ends', async () => {
        const row = await weights.pulls.get(person.accountId, id);
        return row.state === 'queued' || row.state === 'running' ? undefined : row;
      }),
  };
}

async function createSurroundings(
  database: DatabaseKind,
): Promise<Pick<TestWeights, 'db' | 'dataDir' | 'person'>> {
  const dataDir = await mkdtemp(join(tmpdir(), 'millrace-weights-'));
  cleanups.push(() => rm(dataDir, { recursive: true, force: true }));
  const { url, drop } = await createDatabase(database);
  cleanups.push(drop);
  const db = await openDatabase({ url, poolSize: 4, dataDir });
  cleanups.push(() => db.destroy());
  const accountId = newId();
  await db
    .insertInto('accounts')
    .values({ id: accountId, name: 'test', created_at: Date.now() })
    .execute();
  const person: SessionPrincipal = {
    kind: 'session',
    accountId,
    address: '127.0.0.1',
    sessionId: newId(),
    userId: newId(),
    email: 'owner@example.com',
    role: 'owner',
  };
  return { db, dataDir, person };
}
