// What a background response reserved when it arrived, so that the server that runs it does not
// count it again. Released: never edit, add a migration instead.

import type { Kysely } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('response_runs').addColumn('reservation', 'text').execute();
}
