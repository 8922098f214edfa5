// Takes turns within an account, so that "at most so many" holds under concurrency. A write that changes
// nothing locks the row on PostgreSQL; on SQLite the transaction already holds the only write lock.

import type { Tx } from './tables.ts';

export async function lockAccount(tx: Tx, accountId: string): Promise<void> {
  await tx
    .updateTable('accounts')
    .set((row) => ({ id: row.ref('id') }))
    .where('id', '=', accountId)
    .execute();
}
