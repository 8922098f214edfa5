// Machines that carry our mark but that no living row knows, such as one made by a process that lost its
// claim. They are reported, and removed when a second look still finds them.

import type { Logger } from 'pino';
import type { Database } from '../db/tables.ts';
import type { Driver } from './drivers/driver.ts';

export interface Strangers {
  sweep(): Promise<void>;
}

const lookedUpAtOnce = 500;

export function createStrangers(db: Database, driver: Driver, log: Logger): Strangers {
  let suspects = new Set<string>();

  async function sweep(): Promise<void> {
    // The list first: a row is written before its machine is made, so whatever is listed has one by now.
    const listed = await driver.list();
    const living = new Set<string>();
    for (let start = 0; start < listed.length; start += lookedUpAtOnce) {
      const rows = await db
        .selectFrom('instances')
        .select('id')
        .where('id', 'in', listed.slice(start, start + lookedUpAtOnce))
        .where('status', '!=', 'terminated')
        .execute();
      for (const { id } of rows) living.add(id);
    }
    const unknown = listed.filter((id) => !living.has(id));
    for (const id of unknown) {
      if (!suspects.has(id)) {
        log.warn({ machine: id }, 'a machine with our mark belongs to no instance');
        continue;
      }
      log.warn({ machine: id }, 'removing a machine that belongs to no instance');
      await driver.terminate(id);
    }
    suspects = new Set(unknown);
  }

  return { sweep };
}
