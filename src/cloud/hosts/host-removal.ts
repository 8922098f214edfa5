// Removes a host that has no instances and no filesystems, or one that will never answer again together with
// everything that was on it.

import type { Audit } from '#accounts/audit/audit.ts';
import type { SessionPrincipal } from '#accounts/principal.ts';
import { lockLaunches } from '#cloud/placement/lock-launches.ts';
import { countRows } from '#db/count-rows.ts';
import type { HostRow } from '#db/tables/cloud-rows.ts';
import type { Database, Tx } from '#db/tables/tables.ts';
import type { Clock } from '#lib/clock.ts';
import { conflict, notFound } from '#lib/errors.ts';
import type { Hosts } from './hosts.ts';

export interface RemovalContext {
  readonly db: Database;
  readonly clock: Clock;
  readonly audit: Audit;
  readonly hosts: Pick<Hosts, 'all'>;
  readonly inFile: ReadonlySet<string>;
  readonly ownId: string | null;
}

export async function removeHost(
  context: RemovalContext,
  principal: SessionPrincipal,
  name: string,
  forget: boolean,
): Promise<void> {
  if (context.inFile.has(name)) {
    throw conflict(`Host ${name} is in the configuration file: remove it there first.`);
  }
  await context.db.transaction().execute(async (tx) => {
    // A launch may be about to choose this host.
    await lockLaunches(tx);
    const row = await getHostRow(tx, name);
    if (row.id === context.ownId) {
      throw conflict(`Host ${name} is this server: drain it, or set cloud.driver to none.`);
    }
    const forgotten = forget ? await forgetAll(tx, row, context) : {};
    await refuseWhileUsed(tx, row);
    await tx.deleteFrom('hosts').where('id', '=', row.id).execute();
    await context.audit.record(tx, principal, {
      action: 'host.removed',
      resourceId: row.id,
      details: { name, ...forgotten },
    });
  });
}

export async function getHostRow(tx: Tx, name: string): Promise<HostRow> {
  const row = await tx.selectFrom('hosts').selectAll().where('name', '=', name).executeTakeFirst();
  if (row === undefined) throw notFound(`Host ${name}`);
  return row;
}

/** Forgets a host that will never answer again: nothing else could end its instances and their costs. */
async function forgetAll(tx: Tx, { id, name }: HostRow, { clock, hosts }: RemovalContext) {
  if (hosts.all().some(({ row, online }) => row.id === id && online)) {
    throw conflict(`Host ${name} answers: terminate its instances instead of forgetting them.`);
  }
  const ended = await tx
    .updateTable('instances')
    .set((row) => ({
      status: 'terminated' as const,
      terminated_at: clock.now(),
      user_data: null,
      due_at: null,
      version: row('version', '+', 1),
    }))
    .where('host_id', '=', id)
    .where('status', '!=', 'terminated')
    .returning('id')
    .execute();
  await tx.deleteFrom('instance_gpus').where('host_id', '=', id).execute();
  await tx.deleteFrom('model_gpus').where('host_id', '=', id).execute();
  const lost = await tx
    .deleteFrom('filesystems')
    .where('host_id', '=', id)
    .returning('id')
    .execute();
  return { machines: ended.length, filesystems: lost.length };
}

async function refuseWhileUsed(tx: Tx, { id, name }: HostRow): Promise<void> {
  const onHost = tx.selectFrom('instances').where('host_id', '=', id);
  const instances = await countRows(onHost.where('status', '!=', 'terminated'));
  if (instances > 0)
    throw conflict(`Host ${name} has ${instances} instances. Drain it and terminate them first.`);
  const filesystems = await countRows(tx.selectFrom('filesystems').where('host_id', '=', id));
  if (filesystems > 0)
    throw conflict(`Host ${name} has ${filesystems} filesystems. Delete them first.`);
}
