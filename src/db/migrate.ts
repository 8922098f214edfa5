// Brings a database to the newest schema. Kysely runs all of it in one transaction; PostgreSQL takes an
// advisory lock and SQLite begins with the write lock, so that starts in parallel wait for each other.

import { type Migration, Migrator } from 'kysely/migration';
import * as house from './migrations/0001-house.ts';
import * as weights from './migrations/0002-weights.ts';
import * as cloud from './migrations/0003-cloud.ts';
import * as usage from './migrations/0004-usage.ts';
import * as limits from './migrations/0005-limits.ts';
import * as backends from './migrations/0006-backends.ts';
import * as hosts from './migrations/0007-hosts.ts';
import type { Database } from './tables.ts';

const migrations: Record<string, Migration> = {
  '0001-house': house,
  '0002-weights': weights,
  '0003-cloud': cloud,
  '0004-usage': usage,
  '0005-limits': limits,
  '0006-backends': backends,
  '0007-hosts': hosts,
};

export async function migrate(db: Database): Promise<void> {
  const migrator = new Migrator({ db, provider: { getMigrations: async () => migrations } });
  const { error } = await migrator.migrateToLatest();
  if (error !== undefined) throw error;
}
