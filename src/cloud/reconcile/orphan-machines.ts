// Orphans are machines that carry this installation's mark but belong to no instance, such as one
// created by a process that had lost its claim. They are logged, and removed if the next sweep
// finds them again. After a restore they are kept until an operator allows it: they may have been
// launched after the backup. Networks that the last machine of an account has left are removed too.

import type { Logger } from 'pino';
import type { Driver } from '#cloud/drivers/driver.ts';
import type { Hosts } from '#cloud/hosts/hosts.ts';
import type { Database } from '#db/tables/tables.ts';

export interface OrphanMachines {
  sweep(): Promise<void>;
}

const idsPerQuery = 500;

export function createOrphanMachines(
  db: Database,
  hosts: Pick<Hosts, 'reachable' | 'driverOf'>,
  log: Logger,
  keepsOrphans: () => boolean = () => false,
): OrphanMachines {
  let suspects = new Map<string, ReadonlySet<string>>();

  async function sweepHost(host: string, driver: Driver): Promise<ReadonlySet<string>> {
    // The list comes first: a row is written before its machine is created, so every listed machine of an
    // instance has a row by now.
    const listed = await driver.list();
    const known = await findInstances(db, listed);
    const orphans = listed.filter((id) => !known.has(id));
    for (const id of orphans) {
      if (!suspects.get(host)?.has(id)) {
        log.warn({ machine: id, host }, 'found a machine that belongs to no instance');
        continue;
      }
      if (keepsOrphans()) continue;
      log.warn({ machine: id, host }, 'removing a machine that belongs to no instance');
      await driver.terminate(id);
    }
    return new Set(orphans);
  }

  return {
    async sweep() {
      const found = new Map<string, ReadonlySet<string>>();
      for (const host of hosts.reachable()) {
        const driver = hosts.driverOf(host);
        if (driver === undefined) continue;
        await sweepHost(host, driver).then(
          (orphans) => found.set(host, orphans),
          (error) => log.warn({ err: error, host }, 'cannot look for orphans on a host'),
        );
        // On its own: while it fails, orphans are still remembered and removed.
        await driver
          .sweepNetworks?.()
          .catch((error) => log.warn({ err: error, host }, 'cannot remove unused networks'));
      }
      suspects = found;
    },
  };
}

/** Searches the instances of all hosts: two hosts may be groups of one cluster, which lists the machines of
 * both. */
async function findInstances(db: Database, ids: readonly string[]): Promise<Set<string>> {
  const known = new Set<string>();
  for (let start = 0; start < ids.length; start += idsPerQuery) {
    const rows = await db
      .selectFrom('instances')
      .select('id')
      .where('id', 'in', ids.slice(start, start + idsPerQuery))
      .where('status', '!=', 'terminated')
      .execute();
    for (const { id } of rows) known.add(id);
  }
  return known;
}
