// Which SSH keys were generated here: their private halves have a file whose name is known, those of pasted keys
// do not. It is not known of older ones. Released: never edit, add a migration instead.

import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table ssh_keys add column is_generated integer not null default 0`.execute(db);
}
