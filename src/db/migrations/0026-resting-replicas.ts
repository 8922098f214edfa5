// How replicas on machines rest. Released: never edit, add a migration instead.

import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table replicas add column resting text`.execute(db);
  await sql`alter table replicas add column idle_since bigint`.execute(db);
}
