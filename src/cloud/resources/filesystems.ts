// Filesystems: names that outlive machines. The rows are here; the directories behind them are made and
// removed by the reconciler.

import type { Audit } from '#accounts/audit.ts';
import type { Principal } from '#accounts/principal.ts';
import {
  filesystemInUse,
  filesystemNameTaken,
  filesystemNotFound,
  quotaExceeded,
  regionNotFound,
} from '#cloud/errors.ts';
import { toMountPoint } from '#cloud/instances/launch.ts';
import { findOnlyHome, type Place } from '#cloud/placement/placement.ts';
import { findRegion, toRegion } from '#cloud/regions.ts';
import type { Filesystem, NewFilesystem } from '#cloud/schema.ts';
import { toWireTime } from '#cloud/wire-time.ts';
import type { FilesystemRow } from '#db/cloud-rows.ts';
import { lockAccount } from '#db/lock-account.ts';
import type { Database, Tx } from '#db/tables.ts';
import type { Clock } from '#lib/clock.ts';
import { newId } from '#lib/ids.ts';

export interface Filesystems {
  list(accountId: string): Promise<Filesystem[]>;
  create(principal: Principal, input: NewFilesystem): Promise<Filesystem>;
  remove(principal: Principal, id: string): Promise<void>;
}

export function createFilesystems(
  db: Database,
  clock: Clock,
  parts: { audit: Audit; places(): readonly Place[]; nudge(): void },
  options: { maxPerAccount: number },
): Filesystems {
  async function list(accountId: string): Promise<Filesystem[]> {
    const rows = await db
      .selectFrom('filesystems')
      .selectAll()
      .where('account_id', '=', accountId)
      .where('state', '!=', 'deleting')
      .orderBy('created_at')
      .orderBy('id')
      .execute();
    const used = await inUse(db, accountId);
    const members = await db
      .selectFrom('memberships')
      .select('user_id')
      .where('account_id', '=', accountId)
      .execute();
    const active = new Set([accountId, ...members.map(({ user_id }) => user_id)]);
    return rows.map((row) => toFilesystem(row, used.has(row.id), active.has(row.created_by)));
  }

  async function create(principal: Principal, { name, region }: NewFilesystem) {
    if (findRegion(region) === undefined) throw regionNotFound(region);
    const { accountId } = principal;
    const row = await db.transaction().execute(async (tx) => {
      await lockAccount(tx, accountId);
      const names = await tx
        .selectFrom('filesystems')
        .select('name')
        .where('account_id', '=', accountId)
        .where('state', '!=', 'deleting')
        .execute();
      if (names.some((one) => one.name === name)) throw filesystemNameTaken(name);
      if (names.length >= options.maxPerAccount) throw quotaExceeded();
      const creator = await findCreator(tx, principal);
      const created: FilesystemRow = {
        id: newId(),
        account_id: accountId,
        name,
        region,
        host_id: findOnlyHome(parts.places(), region),
        node: null,
        state: 'creating',
        bytes_used: null,
        created_at: clock.now(),
        created_by: creator.id,
        created_by_email: creator.email,
        due_at: clock.now(),
        claim: null,
        claimed_until: 0,
        attempts: 0,
      };
      await tx.insertInto('filesystems').values(created).execute();
      const details = { name, region };
      await parts.audit.record(tx, principal, {
        action: 'filesystem.created',
        resourceId: created.id,
        details,
      });
      return created;
    });
    parts.nudge();
    return toFilesystem(row, false, true);
  }

  async function remove(principal: Principal, id: string): Promise<void> {
    await db.transaction().execute(async (tx) => {
      await lockAccount(tx, principal.accountId);
      const row = await tx
        .updateTable('filesystems')
        .set({ state: 'deleting', due_at: clock.now(), attempts: 0 })
        .where('id', '=', id)
        .where('account_id', '=', principal.accountId)
        .where('state', '!=', 'deleting')
        .returning(['name', 'region'])
        .executeTakeFirst();
      if (row === undefined) throw filesystemNotFound();
      if ((await inUse(tx, principal.accountId)).has(id)) throw filesystemInUse();
      await parts.audit.record(tx, principal, {
        action: 'filesystem.deleted',
        resourceId: id,
        details: row,
      });
    });
    parts.nudge();
  }

  return { list, create, remove };
}

/** A terminating instance still holds its filesystems. */
async function inUse(db: Database | Tx, accountId: string): Promise<Set<string>> {
  const rows = await db
    .selectFrom('instance_filesystems')
    .innerJoin('instances', 'instances.id', 'instance_filesystems.instance_id')
    .select('filesystem_id')
    .where('account_id', '=', accountId)
    .where('status', '!=', 'terminated')
    .execute();
  return new Set(rows.map(({ filesystem_id }) => filesystem_id));
}

/** A person: whoever is signed in, made the key, or owns the account; the account itself before anyone joined. */
async function findCreator(tx: Tx, principal: Principal): Promise<{ id: string; email: string }> {
  if (principal.kind === 'session') return { id: principal.userId, email: principal.email };
  const maker = await tx
    .selectFrom('api_keys')
    .innerJoin('users', 'users.id', 'api_keys.created_by')
    .select(['users.id', 'users.email'])
    .where('api_keys.id', '=', principal.keyId)
    .executeTakeFirst();
  if (maker !== undefined) return maker;
  const owner = await tx
    .selectFrom('memberships')
    .innerJoin('users', 'users.id', 'memberships.user_id')
    .select(['users.id', 'users.email'])
    .where('account_id', '=', principal.accountId)
    .where('role', '=', 'owner')
    .orderBy('memberships.created_at')
    .executeTakeFirst();
  return owner ?? { id: principal.accountId, email: 'account@localhost' };
}

function toFilesystem(row: FilesystemRow, used: boolean, creatorIsMember: boolean): Filesystem {
  return {
    id: row.id,
    name: row.name,
    mount_point: toMountPoint(row.name),
    created: toWireTime(row.created_at),
    created_by: {
      id: row.created_by,
      email: row.created_by_email,
      status: creatorIsMember ? 'active' : 'deactivated',
    },
    is_in_use: used,
    region: toRegion(row.region),
    ...(row.bytes_used === null ? {} : { bytes_used: row.bytes_used }),
  };
}
