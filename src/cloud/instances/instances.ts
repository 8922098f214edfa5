// Instances as their owners see and command them. A command is written here and carried out by the
// reconciler; no request waits for a machine.

import { type Audit, serverOf } from '#accounts/audit/audit.ts';
import type { Principal } from '#accounts/principal.ts';
import type { AuditAction } from '#accounts/schema.ts';
import { instanceBusy, instanceNotFound, invalidParameters } from '#cloud/errors.ts';
import type { Instance, InstanceChange } from '#cloud/schema.ts';
import { lockAccount } from '#db/lock-account.ts';
import type { InstanceRow } from '#db/tables/cloud-rows.ts';
import type { Database, Tx } from '#db/tables/tables.ts';
import type { Clock } from '#lib/clock.ts';
import type { InstanceEvents } from './instance-events.ts';
import { viewInstances, whyBlocked } from './instance-view.ts';
import { toTagsText } from './launch-row.ts';

type RestartAction = 'restart' | 'power-cycle';

export interface Instances {
  list(accountId: string): Promise<Instance[]>;
  get(accountId: string, id: string): Promise<Instance>;
  /** Changes the name, the tags, both or nothing. An empty name removes it. */
  change(principal: Principal, id: string, change: InstanceChange): Promise<Instance>;
  /** Restarts all of them or none; `terminate` likewise. */
  restart(principal: Principal, ids: readonly string[], action: RestartAction): Promise<Instance[]>;
  terminate(principal: Principal, ids: readonly string[]): Promise<Instance[]>;
  /** Terminates an instance of a deployment, unless it is gone or terminating already. `writeRows` runs in the
   * transaction either way. */
  release(accountId: string, id: string, writeRows: (tx: Tx) => Promise<void>): Promise<void>;
}

export interface InstanceParts {
  audit: Audit;
  events: InstanceEvents;
  nudge(): void;
}

/** How long a terminated instance can still be read by its id. */
const terminatedReadableMs = 3_600_000;

const auditActions: Record<RestartAction, AuditAction> = {
  restart: 'instance.restarted',
  'power-cycle': 'instance.power_cycled',
};

interface Context extends InstanceParts {
  readonly db: Database;
  readonly clock: Clock;
}

export function createInstances(db: Database, clock: Clock, parts: InstanceParts): Instances {
  const context: Context = { db, clock, ...parts };
  return {
    async list(accountId) {
      const rows = await db
        .selectFrom('instances')
        .selectAll()
        .where('account_id', '=', accountId)
        .where('status', '!=', 'terminated')
        .orderBy('launched_at')
        .orderBy('id')
        .execute();
      return viewInstances(db, rows);
    },
    get: (accountId, id) => getInstance(context, accountId, id),
    change: (principal, id, change) => update(context, principal, id, change),
    restart: (principal, ids, action) =>
      command(context, principal, ids, async (tx, row) => {
        await restart(tx, row, action, clock.now());
        const resourceId = row.id;
        await parts.audit.record(tx, principal, { action: auditActions[action], resourceId });
      }),
    terminate: (principal, ids) =>
      command(context, principal, ids, async (tx, row) => {
        if (row.status === 'terminating') return;
        await terminate(tx, row, clock.now());
        await parts.audit.record(tx, principal, toTermination(row));
      }),
    release: (accountId, id, writeRows) => release(context, { accountId, id }, writeRows),
  };
}

async function getInstance({ db, clock }: Context, accountId: string, id: string) {
  const row = await db
    .selectFrom('instances')
    .selectAll()
    .where('id', '=', id)
    .where('account_id', '=', accountId)
    .executeTakeFirst();
  const ended = row?.terminated_at ?? null;
  if (row === undefined || (ended !== null && ended + terminatedReadableMs <= clock.now())) {
    throw instanceNotFound();
  }
  return (await viewInstances(db, [row]))[0] as Instance;
}

async function update(
  context: Context,
  principal: Principal,
  id: string,
  { name: newName, tags }: InstanceChange,
): Promise<Instance> {
  const { accountId } = principal;
  if (newName == null && tags == null) return getInstance(context, accountId, id);
  if (tags != null && new Set(tags.map(({ key }) => key)).size < tags.length) {
    throw invalidParameters("Error in request body at 'tags': A tag key occurs twice");
  }
  const name = newName == null ? {} : { name: newName || null };
  await context.db.transaction().execute(async (tx) => {
    const row = await tx
      .updateTable('instances')
      .set({ ...name, ...(tags != null && { tags: toTagsText(tags) }) })
      .where('id', '=', id)
      .where('account_id', '=', accountId)
      .where('status', '!=', 'terminated')
      .returning('id')
      .executeTakeFirst();
    if (row === undefined) throw instanceNotFound();
    const shown = tags?.map(({ key, value }) => `${key}=${value}`);
    const details = { ...name, ...(shown !== undefined && { tags: shown }) };
    const action = 'instance.updated';
    await context.audit.record(tx, principal, { action, resourceId: id, details });
  });
  const instance = await getInstance(context, accountId, id);
  announce(context, accountId, [instance]);
  return instance;
}

/** Changes all of the instances or none. The lock on the account prevents deadlocks between commands. */
async function command(
  context: Context,
  { accountId }: Principal,
  ids: readonly string[],
  change: (tx: Tx, row: InstanceRow) => Promise<void>,
): Promise<Instance[]> {
  const wanted = [...new Set(ids)];
  if (wanted.length === 0) return [];
  const instances = await context.db.transaction().execute(async (tx) => {
    await lockAccount(tx, accountId);
    for (const id of wanted) {
      const row = await tx
        .updateTable('instances')
        .set((old) => ({ version: old('version', '+', 1) }))
        .where('id', '=', id)
        .where('account_id', '=', accountId)
        .where('status', '!=', 'terminated')
        .returningAll()
        .executeTakeFirst();
      if (row === undefined) throw instanceNotFound();
      await change(tx, row);
    }
    const rows = await tx.selectFrom('instances').selectAll().where('id', 'in', wanted).execute();
    return viewInstances(tx, rows);
  });
  announce(context, accountId, instances);
  context.nudge();
  return wanted.map((id) => instances.find((one) => one.id === id) as Instance);
}

async function restart(tx: Tx, row: InstanceRow, action: RestartAction, now: number) {
  if (whyBlocked(row) !== undefined) throw instanceBusy();
  await tx
    .updateTable('instances')
    .set({ action, action_started_at: null, attempts: 0, due_at: now })
    .where('id', '=', row.id)
    .execute();
}

async function terminate(tx: Tx, { id }: InstanceRow, now: number): Promise<void> {
  await tx
    .updateTable('instances')
    .set({ status: 'terminating', status_reason: null, action: null, attempts: 0, due_at: now })
    .where('id', '=', id)
    .execute();
}

async function release(
  context: Context,
  { accountId, id }: { accountId: string; id: string },
  writeRows: (tx: Tx) => Promise<void>,
): Promise<void> {
  const isReleased = await context.db.transaction().execute(async (tx) => {
    await lockAccount(tx, accountId);
    const row = await tx
      .updateTable('instances')
      .set((old) => ({ version: old('version', '+', 1) }))
      .where('id', '=', id)
      .where('status', 'not in', ['terminating', 'terminated'])
      .returningAll()
      .executeTakeFirst();
    await writeRows(tx);
    if (row === undefined) return false;
    await terminate(tx, row, context.clock.now());
    await context.audit.record(tx, serverOf(accountId), toTermination(row));
    return true;
  });
  if (!isReleased) return;
  context.events.publish({ accountId, instanceId: id, status: 'terminating' });
  context.nudge();
}

/** What the audit log records when an instance is terminated. */
const toTermination = (row: InstanceRow) => ({
  action: 'instance.terminated' as const,
  resourceId: row.id,
  details: {
    instance_lrn: `lrn:cloud:instance:${row.id}`,
    instance_type: row.type_name,
    region: row.region,
  },
});

function announce({ events }: Context, accountId: string, instances: readonly Instance[]): void {
  for (const { id, status } of instances) events.publish({ accountId, instanceId: id, status });
}
