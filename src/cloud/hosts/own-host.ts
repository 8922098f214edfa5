// This server's own host. Its id is in the data directory, next to its machines, so that several servers on
// one database each know which host is theirs.

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { lockLaunches } from '#cloud/placement/lock-launches.ts';
import type { Database, Tx } from '#db/tables/tables.ts';
import type { Clock } from '#lib/clock.ts';
import { newId } from '#lib/ids.ts';
import { toHostRow } from './host.ts';

export interface OwnHost {
  name: string;
  region: string;
  driver: 'sandbox' | 'scripted';
}

/** The host of all rows that are older than the `hosts` table; see the migration. */
const formerHostId = '0'.repeat(32);

/** Returns the same id at every start from the same data directory. */
export function readHostId(dataDir: string): string {
  const file = join(dataDir, 'host-id');
  try {
    const id = readFileSync(file, 'utf8').trim();
    if (/^[0-9a-f]{32}$/.test(id)) return id;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
  const id = newId();
  writeFileSync(file, `${id}\n`, { mode: 0o600 });
  return id;
}

/** Writes the row of this server's own host as configured. */
export async function ensureOwnHost(
  db: Database,
  clock: Clock,
  id: string,
  own: OwnHost,
): Promise<void> {
  await db.transaction().execute(async (tx) => {
    await lockLaunches(tx);
    const settings = { ...own, name: await chooseName(tx, id, own.name) };
    const row = toHostRow({ id, ...settings, source: 'builtin', created_at: clock.now() });
    await tx
      .insertInto('hosts')
      .values(row)
      .onConflict((conflict) => conflict.column('id').doUpdateSet(settings))
      .execute();
    await adoptFormerRows(tx, id);
  });
}

/** Two servers may have the same host name, such as two on one computer. */
async function chooseName(tx: Tx, id: string, wanted: string): Promise<string> {
  const others = await tx.selectFrom('hosts').select('name').where('id', '!=', id).execute();
  const taken = new Set(others.map(({ name }) => name));
  for (let count = 1; ; count++) {
    const name = count === 1 ? wanted : `${wanted}-${count}`;
    if (!taken.has(name)) return name;
  }
}

/** The first server that starts after the migration owns everything created before it. */
async function adoptFormerRows(tx: Tx, id: string): Promise<void> {
  const former = await tx
    .deleteFrom('hosts')
    .where('id', '=', formerHostId)
    .returning('id')
    .execute();
  if (former.length === 0) return;
  for (const table of ['instances', 'instance_gpus', 'filesystems'] as const) {
    await tx
      .updateTable(table as 'instances')
      .set({ host_id: id })
      .where('host_id', '=', formerHostId)
      .execute();
  }
}
