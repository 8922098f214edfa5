// Reads the links of a conversation from an index. The rows hold whole responses, and reading a page for each of them
// made the next turn after 200 responses slower than after two. Released: never edit, add a migration instead.

import type { Kysely } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createIndex('responses_by_place')
    .on('responses')
    .columns(['line_id', 'depth', 'account_id', 'id', 'previous_id'])
    .execute();
}
