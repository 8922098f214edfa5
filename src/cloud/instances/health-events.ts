// Records in the audit log when an instance becomes unhealthy, with the reason, and when it is active again. The caller
// changes the row in the same transaction.

import { type Audit, serverOf } from '#accounts/audit/audit.ts';
import type { InstanceRow } from '#db/tables/cloud-rows.ts';
import type { Tx } from '#db/tables/tables.ts';

/** Errors of drivers may quote the output of programs. */
const maxReasonLength = 500;

export async function recordHealth(
  tx: Tx,
  audit: Audit,
  row: Pick<InstanceRow, 'id' | 'account_id' | 'status'>,
  { status = row.status, status_reason }: Partial<InstanceRow>,
): Promise<void> {
  if (status === row.status) return;
  const server = serverOf(row.account_id);
  if (status === 'unhealthy') {
    const reason = status_reason?.slice(0, maxReasonLength) ?? null;
    await audit.record(tx, server, {
      action: 'instance.became_unhealthy',
      resourceId: row.id,
      details: { reason },
    });
  } else if (row.status === 'unhealthy' && status === 'active') {
    await audit.record(tx, server, { action: 'instance.recovered', resourceId: row.id });
  }
}
