// Migrates a database to the newest schema. Kysely runs all migrations in one transaction. PostgreSQL takes an
// advisory lock and SQLite begins with the write lock, so that parallel starts wait for each other.

import { setTimeout as pause } from 'node:timers/promises';
import type { FastifyBaseLogger } from 'fastify';
import { sql } from 'kysely';
import { DEFAULT_MIGRATION_TABLE, type Migration, Migrator } from 'kysely/migration';
import * as house from '#db/migrations/0001-house.ts';
import * as weights from '#db/migrations/0002-weights.ts';
import * as cloud from '#db/migrations/0003-cloud.ts';
import * as usage from '#db/migrations/0004-usage.ts';
import * as limits from '#db/migrations/0005-limits.ts';
import * as backends from '#db/migrations/0006-backends.ts';
import * as hosts from '#db/migrations/0007-hosts.ts';
import * as usageOrder from '#db/migrations/0008-usage-order.ts';
import * as generatedKeys from '#db/migrations/0009-generated-keys.ts';
import * as reservedUsage from '#db/migrations/0010-reserved-usage.ts';
import * as people from '#db/migrations/0011-people.ts';
import * as modelGpus from '#db/migrations/0012-model-gpus.ts';
import * as usageNames from '#db/migrations/0013-usage-names.ts';
import * as privateNetwork from '#db/migrations/0014-private-network.ts';
import * as conversations from '#db/migrations/0015-conversations.ts';
import * as conversationIndex from '#db/migrations/0016-conversation-index.ts';
import * as responses from '#db/migrations/0017-responses.ts';
import * as batches from '#db/migrations/0018-batches.ts';
import * as deployments from '#db/migrations/0019-deployments.ts';
import * as deploymentRuns from '#db/migrations/0020-deployment-runs.ts';
import * as runReservations from '#db/migrations/0021-run-reservations.ts';
import * as replicas from '#db/migrations/0022-replicas.ts';
import * as deploymentsInFile from '#db/migrations/0023-deployments-in-file.ts';
import * as machineWeights from '#db/migrations/0025-machine-weights.ts';
import * as restingReplicas from '#db/migrations/0026-resting-replicas.ts';
import * as servers from '#db/migrations/0028-servers.ts';
import * as pullOrders from '#db/migrations/0029-pull-orders.ts';
import * as responseIndex from '#db/migrations/0030-response-index.ts';
import * as lettingFinish from '#db/migrations/0031-letting-finish.ts';
import * as servedModels from '#db/migrations/0032-served-models.ts';
import * as refusedRequests from '#db/migrations/0033-refused-requests.ts';
import * as refusedSshKeys from '#db/migrations/0034-refused-ssh-keys.ts';
import type { Database } from '#db/tables/tables.ts';

const migrations: Record<string, Migration> = {
  '0001-house': house,
  '0002-weights': weights,
  '0003-cloud': cloud,
  '0004-usage': usage,
  '0005-limits': limits,
  '0006-backends': backends,
  '0007-hosts': hosts,
  '0008-usage-order': usageOrder,
  '0009-generated-keys': generatedKeys,
  '0010-reserved-usage': reservedUsage,
  '0011-people': people,
  '0012-model-gpus': modelGpus,
  '0013-usage-names': usageNames,
  '0014-private-network': privateNetwork,
  '0015-conversations': conversations,
  '0016-conversation-index': conversationIndex,
  '0017-responses': responses,
  '0018-batches': batches,
  '0019-deployments': deployments,
  '0020-deployment-runs': deploymentRuns,
  '0021-run-reservations': runReservations,
  '0022-replicas': replicas,
  '0023-deployments-in-file': deploymentsInFile,
  '0025-machine-weights': machineWeights,
  '0026-resting-replicas': restingReplicas,
  '0028-servers': servers,
  '0029-pull-orders': pullOrders,
  '0030-response-index': responseIndex,
  '0031-letting-finish': lettingFinish,
  '0032-served-models': servedModels,
  '0033-refused-requests': refusedRequests,
  '0034-refused-ssh-keys': refusedSshKeys,
};

/** Names of all migrations, in the order in which they run. */
export const migrationNames: readonly string[] = Object.keys(migrations);

/** Delay that lets a log line be seen before the migration starts. */
const seenMs = 300;

const createMigrator = (db: Database) =>
  new Migrator({ db, provider: { getMigrations: async () => migrations } });

/** Throws unless exactly the migrations of this version have run. Changes nothing. */
export async function checkMigrated(db: Database): Promise<void> {
  await refuseNewer(db);
  const all = await createMigrator(db).getMigrations();
  if (all.some(({ executedAt }) => executedAt === undefined))
    throw new Error('it belongs to an older version of Millrace; start this version once first');
}

/** An older release would misread the tables of a newer one, and write rows that the newer one can't use. */
async function refuseNewer(db: Database): Promise<void> {
  const tables = await db.introspection.getTables({ withInternalKyselyTables: true });
  if (!tables.some(({ name }) => name === DEFAULT_MIGRATION_TABLE)) return;
  const { rows } = await sql<{ name: string }>`
    select name from ${sql.table(DEFAULT_MIGRATION_TABLE)} order by name desc`.execute(db);
  const newer = rows.find(({ name }) => !(name in migrations));
  if (newer === undefined) return;
  throw new Error(
    `it was used by a newer version of Millrace: its schema is ${newer.name}, and this version knows schemas up to ` +
      `${migrationNames.at(-1)}. Install the newer version, or restore a backup from before the upgrade`,
  );
}

export async function migrate(db: Database, log?: FastifyBaseLogger): Promise<void> {
  await refuseNewer(db);
  const migrator = createMigrator(db);
  const all = await migrator.getMigrations();
  const missing = all.filter(({ executedAt }) => executedAt === undefined);
  // A new database takes no time. Migrating an old SQLite database blocks the process until it is done.
  if (log !== undefined && missing.length > 0 && missing.length < all.length) {
    const names = missing.map(({ name }) => name);
    log.info({ migrations: names }, 'database is brought to this version, which may take a while');
    await pause(seenMs);
  }
  const { error } = await migrator.migrateToLatest();
  if (error !== undefined) throw error;
}
