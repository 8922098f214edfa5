// Who added an SSH key, as far as the audit log knows, and the keys that no machine of an account accepts any longer.
// Released: never edit, add a migration instead.

import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('ssh_keys').addColumn('created_by', 'text').execute();
  await sql`
    update ssh_keys set created_by = (
      select coalesce(audit_events.user_id, api_keys.created_by)
      from audit_events left join api_keys on api_keys.id = audit_events.api_key_id
      where audit_events.account_id = ssh_keys.account_id
        and audit_events.resource_id = ssh_keys.id and audit_events.action = 'ssh_key.created'
      limit 1
    )`.execute(db);
  await db.schema
    .createTable('refused_ssh_keys')
    .addColumn('account_id', 'text', (column) => column.notNull())
    .addColumn('public_key', 'text', (column) => column.notNull())
    .addColumn('refused_at', 'bigint', (column) => column.notNull())
    .addPrimaryKeyConstraint('refused_ssh_keys_id', ['account_id', 'public_key'])
    .execute();
}
