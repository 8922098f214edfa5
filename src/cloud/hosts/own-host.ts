// The host that this server is: known by an id in its data directory, where its machines are too. So
// several servers on one database each know what is theirs.

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { HostRow } from '#db/cloud-rows.ts';
import type { Database, Tx } from '#db/tables.ts';
import type { Clock } from '#lib/clock.ts';
import { newId } from '#lib/ids.ts';

export interface OwnHost {
  name: string;
  region: string;
  driver: 'sandbox' | 'scripted';
}

/** Of everything that is older than hosts; see the migration. */
const formerHost = '0'.repeat(32);

/** The same at every start from the same directory. */
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

/** Its row is there afterwards, as the configuration says. */
export async function ensureOwnHost(
  db: Database,
  clock: Clock,
  id: string,
  own: OwnHost,
): Promise<void> {
  await db.transaction().execute(async (tx) => {
    await tx.updateTable('turns').set({ name: 'launch' }).where('name', '=', 'launch').execute();
    const settings = { ...own, name: await chooseName(tx, id, own.name) };
    const row: HostRow = {
      id,
      ...settings,
      source: 'builtin',
      url: null,
      target: null,
      fingerprint: null,
      pool: null,
      network: null,
      project: null,
      filesystems_path: null,
      extras: '{}',
      draining: 0,
      created_at: clock.now(),
      seen_at: null,
      status: 'offline',
      reason: null,
      report: null,
    };
    await tx
      .insertInto('hosts')
      .values(row)
      .onConflict((conflict) => conflict.column('id').doUpdateSet(settings))
      .execute();
    await takeOver(tx, id);
  });
}

/** Two servers may have one host name, such as two in one computer. */
async function chooseName(tx: Tx, id: string, wanted: string): Promise<string> {
  const others = await tx.selectFrom('hosts').select('name').where('id', '!=', id).execute();
  const taken = new Set(others.map(({ name }) => name));
  for (let count = 1; ; count++) {
    const name = count === 1 ? wanted : `${wanted}-${count}`;
    if (!taken.has(name)) return name;
  }
}

/** The first server to start after the migration has made what was there before. */
async function takeOver(tx: Tx, id: string): Promise<void> {
  const former = await tx
    .deleteFrom('hosts')
    .where('id', '=', formerHost)
    .returning('id')
    .execute();
  if (former.length === 0) return;
  for (const table of ['instances', 'instance_gpus', 'filesystems'] as const) {
    await tx
      .updateTable(table as 'instances')
      .set({ host_id: id })
      .where('host_id', '=', formerHost)
      .execute();
  }
}
