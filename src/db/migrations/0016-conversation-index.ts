// Lists conversations and counts their bytes from an index. SQLite reads the columns behind a large text only by
// walking through all of its pages. Also bounds the text that a search reads. Released: never edit, add a migration
// instead.

import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema.dropIndex('conversations_by_user').execute();
  await db.schema
    .createIndex('conversations_by_user')
    .on('conversations')
    .columns(['user_id', 'updated_at', 'id', 'account_id', 'name', 'bytes', 'shared', 'revision'])
    .column('created_at')
    .execute();
  await sql`update conversations set search_text = substr(search_text, 1, 16000)`.execute(db);
}
