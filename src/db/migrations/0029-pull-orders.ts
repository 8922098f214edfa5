// The hub's token of a pull, sealed, and whether the pull was made for deployments. Released: never
// edit, add a migration instead.

import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table weight_pulls add column hub_token text`.execute(db);
  await sql`alter table weight_pulls add column for_deployments integer not null default 0`.execute(
    db,
  );
}
