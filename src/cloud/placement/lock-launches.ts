// Serialises launches across servers until the transaction ends, so that a GPU, an address or a host is not
// reserved twice. A write that changes nothing locks the row on PostgreSQL; SQLite has one writer anyway.

import type { Tx } from '#db/tables/tables.ts';

export async function lockLaunches(tx: Tx): Promise<void> {
  await tx.updateTable('turns').set({ name: 'launch' }).where('name', '=', 'launch').execute();
}
