// Which requests have the tokens and the cost that were reserved for them, because what they used is not known.
// Released: never edit, add a migration instead.

import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table usage_requests add column reserved integer not null default 0`.execute(db);
}
