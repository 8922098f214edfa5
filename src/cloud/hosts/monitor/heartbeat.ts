// Writes what a probe found to the host's row: the status, the report and, while the host answers, a
// heartbeat. Other servers read it for the hosts that they can't reach themselves.

import type { HostRow } from '#db/tables/cloud-rows.ts';
import type { Database } from '#db/tables/tables.ts';
import type { HostMonitor } from './host-monitor.ts';

export interface HeartbeatOptions {
  /** How long a host may be silent before it counts as offline and its instances as unhealthy. */
  graceMs: number;
  /** True if no other server uses this database, so that no other server reads heartbeats. */
  singleServer: boolean;
}

/** The interval when several servers share the database. */
export const sharedHeartbeatMs = 5_000;
const singleServerHeartbeatMs = 30_000;

/** Updates the given row in place as well. */
export async function writeHeartbeat(
  db: Database,
  row: HostRow,
  { silence, report }: Pick<HostMonitor, 'silence' | 'report'>,
  { now, graceMs, singleServer }: HeartbeatOptions & { now: number },
): Promise<void> {
  const sinceSeenMs = now - (row.seen_at ?? 0);
  // Another server may reach the host even if this one doesn't.
  if (silence !== null && sinceSeenMs < graceMs) return;
  const next = {
    status: silence === null ? ('online' as const) : ('offline' as const),
    reason: silence?.reason ?? null,
    report: report === null ? null : JSON.stringify(report),
  };
  const isSame =
    next.status === row.status && next.reason === row.reason && next.report === row.report;
  const intervalMs = singleServer ? singleServerHeartbeatMs : sharedHeartbeatMs;
  if (isSame && (silence !== null || sinceSeenMs < intervalMs)) return;
  const changes = { ...next, ...(silence === null ? { seen_at: now } : {}) };
  await db.updateTable('hosts').set(changes).where('id', '=', row.id).execute();
  Object.assign(row, changes);
}
