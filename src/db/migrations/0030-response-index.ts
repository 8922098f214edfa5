// An index that holds the links of a conversation. The rows hold whole responses, and SQLite read a page for each of
// them: the query for 200 responses took 0.73 ms instead of 0.59 ms (bench/RESULTS.md). Released: never edit, add a
// migration instead.

import type { Kysely } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createIndex('responses_by_place')
    .on('responses')
    .columns(['line_id', 'depth', 'account_id', 'id', 'previous_id'])
    .execute();
}
