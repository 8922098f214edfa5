// Serializes transactions of an account, so that limits on counts hold under concurrency. A write that changes
// nothing locks the row on PostgreSQL; on SQLite the transaction already holds the only write lock.

import type { Tx } from '#db/tables/tables.ts';

export async function lockAccount(tx: Tx, accountId: string): Promise<void> {
  await tx
    .updateTable('accounts')
    .set((row) => ({ id: row.ref('id') }))
    .where('id', '=', accountId)
    .execute();
}
