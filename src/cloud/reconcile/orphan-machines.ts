// Machines that carry our mark but that no living row knows, such as one made by a process that lost its
// claim. They are reported, and removed when a second look still finds them.

import type { Logger } from 'pino';
import type { Driver } from '#cloud/drivers/driver.ts';
import type { Hosts } from '#cloud/hosts/hosts.ts';
import type { Database } from '#db/tables.ts';

export interface Strangers {
  sweep(): Promise<void>;
}

const lookedUpAtOnce = 500;

export function createStrangers(
  db: Database,
  hosts: Pick<Hosts, 'reachable' | 'driverOf'>,
  log: Logger,
): Strangers {
  let suspects = new Map<string, ReadonlySet<string>>();

  async function sweep(): Promise<void> {
    const found = new Map<string, ReadonlySet<string>>();
    for (const host of hosts.reachable()) {
      const driver = hosts.driverOf(host);
      if (driver === undefined) continue;
      const suspected = suspects.get(host) ?? new Set();
      await sweepHost(host, driver, suspected).then(
        (unknown) => found.set(host, unknown),
        (error) => log.warn({ err: error, host }, 'a host could not be swept'),
      );
    }
    suspects = found;
  }

  async function sweepHost(host: string, driver: Driver, suspected: ReadonlySet<string>) {
    // The list first: a row is written before its machine is made, so whatever is listed has one by now.
    const listed = await driver.list();
    const living = await findLiving(listed);
    const unknown = listed.filter((id) => !living.has(id));
    for (const id of unknown) {
      if (!suspected.has(id)) {
        log.warn({ machine: id, host }, 'a machine with our mark belongs to no instance');
        continue;
      }
      log.warn({ machine: id, host }, 'removing a machine that belongs to no instance');
      await driver.terminate(id);
    }
    return new Set(unknown);
  }

  /** On whichever host: two of them may be groups of one cluster, which lists the machines of both. */
  async function findLiving(listed: readonly string[]): Promise<Set<string>> {
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
    return living;
  }

  return { sweep };
}
