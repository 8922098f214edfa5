// The weights that the machine of a deployment sees. Released: never edit, add a migration instead.

import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table instances add column weights text`.execute(db);
}
