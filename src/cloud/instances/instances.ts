// Instances as their owners see and command them. A command is written down here and carried out by the
// reconciler; nobody waits for a machine.

import type { Audit, AuditAction } from '#accounts/audit.ts';
import type { Principal } from '#accounts/principal.ts';
import { instanceBusy, instanceNotFound } from '#cloud/errors.ts';
import type { Instance, TagsChange } from '#cloud/schema.ts';
import type { InstanceRow } from '#db/cloud-rows.ts';
import { lockAccount } from '#db/lock-account.ts';
import type { Database, Tx } from '#db/tables.ts';
import type { Clock } from '#lib/clock.ts';
import type { InstanceEvents } from './instance-events.ts';
import { toInstance, whyBlocked } from './instance-view.ts';

export interface Instances {
  list(accountId: string): Promise<Instance[]>;
  get(accountId: string, id: string): Promise<Instance>;
  rename(principal: Principal, id: string, name: string | null): Promise<Instance>;
  /** In place of those it had. */
  retag(principal: Principal, id: string, tags: TagsChange['tags']): Promise<Instance>;
  /** All or none, as for `terminate`. */
  restart(
    principal: Principal,
    ids: readonly string[],
    action: 'restart' | 'power-cycle',
  ): Promise<Instance[]>;
  terminate(principal: Principal, ids: readonly string[]): Promise<Instance[]>;
}

export interface InstanceParts {
  audit: Audit;
  events: InstanceEvents;
  nudge(): void;
}

/** How long a terminated instance can still be read by its id. */
const afterlifeMs = 3_600_000;

/** Databases limit the parameters of a statement: SQLite to 32,766. */
const idsPerQuery = 1000;

const auditActions: Record<'restart' | 'power-cycle', AuditAction> = {
  restart: 'instance.restarted',
  'power-cycle': 'instance.power_cycled',
};

export function createInstances(db: Database, clock: Clock, parts: InstanceParts): Instances {
  async function list(accountId: string) {
    const rows = await db
      .selectFrom('instances')
      .selectAll()
      .where('account_id', '=', accountId)
      .where('status', '!=', 'terminated')
      .orderBy('launched_at')
      .orderBy('id')
      .execute();
    return view(db, rows);
  }

  async function get(accountId: string, id: string) {
    const row = await db
      .selectFrom('instances')
      .selectAll()
      .where('id', '=', id)
      .where('account_id', '=', accountId)
      .executeTakeFirst();
    const ended = row?.terminated_at ?? null;
    if (row === undefined || (ended !== null && ended + afterlifeMs <= clock.now())) {
      throw instanceNotFound();
    }
    return (await view(db, [row]))[0] as Instance;
  }

  const rename: Instances['rename'] = (principal, id, name) =>
    update(principal, id, { name }, { name });

  const retag: Instances['retag'] = (principal, id, tags) => {
    const kept = tags.map(({ key, value }) => ({ key, value }));
    const details = { tags: kept.map(({ key, value }) => `${key}=${value}`) };
    return update(principal, id, { tags: JSON.stringify(kept) }, details);
  };

  async function update(
    principal: Principal,
    id: string,
    change: Partial<Pick<InstanceRow, 'name' | 'tags'>>,
    details: Record<string, unknown>,
  ) {
    await db.transaction().execute(async (tx) => {
      const row = await tx
        .updateTable('instances')
        .set(change)
        .where('id', '=', id)
        .where('account_id', '=', principal.accountId)
        .where('status', '!=', 'terminated')
        .returning('id')
        .executeTakeFirst();
      if (row === undefined) throw instanceNotFound();
      await parts.audit.record(tx, principal, {
        action: 'instance.updated',
        resourceId: id,
        details,
      });
    });
    const instance = await get(principal.accountId, id);
    announce(principal.accountId, [instance]);
    return instance;
  }

  const restart: Instances['restart'] = (principal, ids, action) =>
    command(principal, ids, async (tx, row) => {
      if (whyBlocked(row) !== undefined) throw instanceBusy();
      await write(tx, row, { action, action_started_at: null });
      await parts.audit.record(tx, principal, {
        action: auditActions[action],
        resourceId: row.id,
      });
    });

  const terminate: Instances['terminate'] = (principal, ids) =>
    command(principal, ids, async (tx, row) => {
      if (row.status === 'terminating') return;
      await write(tx, row, { status: 'terminating', status_reason: null, action: null });
      const details = {
        instance_lrn: `lrn:cloud:instance:${row.id}`,
        instance_type: row.type_name,
        region: row.region,
      };
      await parts.audit.record(tx, principal, {
        action: 'instance.terminated',
        resourceId: row.id,
        details,
      });
    });

  /** All or none. Commands of an account take turns, so that two never wait for each other's rows. */
  async function command(
    { accountId }: Principal,
    ids: readonly string[],
    change: (tx: Tx, row: InstanceRow) => Promise<void>,
  ): Promise<Instance[]> {
    const wanted = [...new Set(ids)];
    if (wanted.length === 0) return [];
    const instances = await db.transaction().execute(async (tx) => {
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
      return view(tx, rows);
    });
    announce(accountId, instances);
    parts.nudge();
    return wanted.map((id) => instances.find((one) => one.id === id) as Instance);
  }

  async function write(tx: Tx, row: InstanceRow, changes: Partial<InstanceRow>) {
    await tx
      .updateTable('instances')
      .set({ ...changes, attempts: 0, due_at: clock.now() })
      .where('id', '=', row.id)
      .execute();
  }

  function announce(accountId: string, instances: readonly Instance[]) {
    for (const { id, status } of instances) {
      parts.events.publish({ accountId, instanceId: id, status });
    }
  }

  return { list, get, rename, retag, restart, terminate };
}

async function view(db: Database | Tx, rows: readonly InstanceRow[]): Promise<Instance[]> {
  const instances: Instance[] = [];
  for (let from = 0; from < rows.length; from += idsPerQuery) {
    instances.push(...(await viewSome(db, rows.slice(from, from + idsPerQuery))));
  }
  return instances;
}

async function viewSome(db: Database | Tx, rows: readonly InstanceRow[]): Promise<Instance[]> {
  const ids = rows.map(({ id }) => id);
  const filesystems = await db
    .selectFrom('instance_filesystems')
    .selectAll()
    .where('instance_id', 'in', ids)
    .orderBy('name')
    .execute();
  const rulesets = await db
    .selectFrom('instance_rulesets')
    .selectAll()
    .where('instance_id', 'in', ids)
    .orderBy('ruleset_id')
    .execute();
  const filesystemsOf = Map.groupBy(filesystems, ({ instance_id }) => instance_id);
  const rulesetsOf = Map.groupBy(rulesets, ({ instance_id }) => instance_id);
  return rows.map((row) =>
    toInstance(row, {
      filesystems: filesystemsOf.get(row.id) ?? [],
      rulesets: rulesetsOf.get(row.id) ?? [],
    }),
  );
}
