// The reconciler's part for filesystems: makes and removes them on the driver, and measures them rarely.

import type { Logger } from 'pino';
import type { Database, FilesystemRow } from '../db/tables.ts';
import type { Clock } from '../lib/clock.ts';
import type { Claim, Claims } from './claims.ts';
import type { Driver } from './drivers/driver.ts';
import { backoffMs } from './instance-steps.ts';

export type FilesystemWork = (claim: Claim) => Promise<void>;

const measureEveryMs = 3_600_000;

export function createFilesystemWork(
  db: Database,
  clock: Clock,
  parts: { claims: Claims; driver: Driver; log: Logger },
): FilesystemWork {
  const { driver, log } = parts;

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
        await apply(row, { ...changes, attempts: 0, due_at: clock.now() + measureEveryMs });
      }
    } catch (error) {
      log.warn({ err: error, filesystem: row.id }, 'a filesystem step failed');
      const due_at = clock.now() + backoffMs(row.attempts);
      await apply(row, { attempts: row.attempts + 1, due_at });
    }
    await parts.claims.release('filesystems', claim);
  };

  async function act(row: FilesystemRow): Promise<Partial<FilesystemRow> | 'gone'> {
    if (row.state === 'deleting') {
      await driver.deleteFilesystem(row.id);
      return 'gone';
    }
    if (row.state === 'creating') await driver.createFilesystem(row.id);
    return { state: 'ready', bytes_used: await driver.filesystemUsage(row.id) };
  }

  /** Only if nobody asked for its deletion meanwhile; then the row is still due. */
  async function apply(row: FilesystemRow, changes: Partial<FilesystemRow>): Promise<void> {
    await db
      .updateTable('filesystems')
      .set(changes)
      .where('id', '=', row.id)
      .where('state', '=', row.state)
      .where('claim', '=', row.claim)
      .execute();
  }
}
