// The reconciler's work on filesystems: creates and deletes them on their hosts, and measures them once an
// hour.

import type { Logger } from 'pino';
import { DriverError } from '#cloud/drivers/driver.ts';
import type { Hosts } from '#cloud/hosts/hosts.ts';
import type { FilesystemRow } from '#db/tables/cloud-rows.ts';
import type { Database } from '#db/tables/tables.ts';
import type { Clock } from '#lib/clock.ts';
import type { Claim, Claims } from './claims.ts';
import { backoffMs } from './instance-steps.ts';

export type FilesystemWork = (claim: Claim) => Promise<void>;

const measureIntervalMs = 3_600_000;

export function createFilesystemWork(
  db: Database,
  clock: Clock,
  parts: { claims: Claims; hosts: Pick<Hosts, 'driverOf'>; log: Logger },
): FilesystemWork {
  const { hosts, log } = parts;

  return async function work(claim) {
    const row = await db
      .selectFrom('filesystems')
      .selectAll()
      .where('id', '=', claim.id)
      .where('claim', '=', claim.token)
      .executeTakeFirst();
    if (row === undefined) return;
    try {
      const changes = await act(row);
      if (changes === 'gone') {
        await db.deleteFrom('filesystems').where('id', '=', row.id).execute();
      } else {
        const due_at = row.host_id === null ? null : clock.now() + measureIntervalMs;
        await apply(row, { ...changes, attempts: 0, due_at });
      }
    } catch (error) {
      log.warn({ err: error, filesystem: row.id }, 'a filesystem step failed');
      const due_at = clock.now() + backoffMs(row.attempts);
      await apply(row, { attempts: row.attempts + 1, due_at });
    }
    await parts.claims.release('filesystems', claim);
  };

  async function act(row: FilesystemRow): Promise<Partial<FilesystemRow> | 'gone'> {
    // It is on no host yet: only its row exists.
    if (row.host_id === null) return row.state === 'deleting' ? 'gone' : { state: 'ready' };
    const driver = hosts.driverOf(row.host_id);
    if (driver === undefined)
      throw new DriverError('unavailable', 'The host of the filesystem does not answer.');
    if (row.state === 'deleting') {
      await driver.deleteFilesystem(row.id);
      return 'gone';
    }
    if (row.state === 'creating') await driver.createFilesystem(row.id, row.node);
    return { state: 'ready', bytes_used: await driver.filesystemUsage(row.id) };
  }

  /** Does nothing if the deletion was requested meanwhile: the row is still due then. */
  async function apply(row: FilesystemRow, changes: Partial<FilesystemRow>): Promise<void> {
    await db
      .updateTable('filesystems')
      .set(changes)
      .where('id', '=', row.id)
      .where('state', '=', row.state)
      .where('host_id', row.host_id === null ? 'is' : '=', row.host_id)
      .where('claim', '=', row.claim)
      .execute();
  }
}
