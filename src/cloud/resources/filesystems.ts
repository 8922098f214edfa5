// Filesystems, which outlive instances. Their rows are written here; the reconciler creates and deletes the
// directories behind them.

import type { Audit } from '#accounts/audit/audit.ts';
import type { Principal } from '#accounts/principal.ts';
import {
  filesystemInUse,
  filesystemNameTaken,
  filesystemNotFound,
  quotaExceeded,
  regionNotFound,
} from '#cloud/errors.ts';
import type { CapacityParts, HostDisk } from '#cloud/placement/capacity.ts';
import { findOnlyHome, type Place } from '#cloud/placement/place.ts';
import { findRegion, toRegion } from '#cloud/regions.ts';
import type { Filesystem, NewFilesystem } from '#cloud/schema.ts';
import { toWireTime } from '#cloud/wire.ts';
import { countRows } from '#db/count-rows.ts';
import { lockAccount } from '#db/lock-account.ts';
import type { FilesystemRow } from '#db/tables/cloud-rows.ts';
import type { Database, Tx } from '#db/tables/tables.ts';
import type { Clock } from '#lib/clock.ts';
import { diskReserveReached } from '#lib/errors.ts';
import { newId } from '#lib/ids.ts';
import { toMountPoint } from './mount-point.ts';

export interface Filesystems {
  list(accountId: string): Promise<Filesystem[]>;
  create(principal: Principal, input: NewFilesystem): Promise<Filesystem>;
  remove(principal: Principal, id: string): Promise<void>;
}

export interface FilesystemParts {
  audit: Audit;
  places(): readonly Place[];
  ownDisk: CapacityParts['ownDisk'];
  nudge(): void;
}

interface Context extends FilesystemParts {
  readonly db: Database;
  readonly clock: Clock;
  readonly maxPerAccount: number;
}

export function createFilesystems(
  db: Database,
  clock: Clock,
  parts: FilesystemParts,
  { maxPerAccount }: { maxPerAccount: number },
): Filesystems {
  const context: Context = { db, clock, maxPerAccount, ...parts };
  return {
    list: (accountId) => list(db, accountId),
    async create(principal, input) {
      const row = await create(context, principal, input);
      parts.nudge();
      return toFilesystem(row, false, true);
    },
    async remove(principal, id) {
      await remove(context, principal, id);
      parts.nudge();
    },
  };
}

async function list(db: Database, accountId: string): Promise<Filesystem[]> {
  const rows = await db
    .selectFrom('filesystems')
    .selectAll()
    .where('account_id', '=', accountId)
    .where('state', '!=', 'deleting')
    .orderBy('created_at')
    .orderBy('id')
    .execute();
  const used = await findUsed(db, accountId);
  const members = await db
    .selectFrom('memberships')
    .select('user_id')
    .where('account_id', '=', accountId)
    .execute();
  const active = new Set([accountId, ...members.map(({ user_id }) => user_id)]);
  return rows.map((row) => toFilesystem(row, used.has(row.id), active.has(row.created_by)));
}

async function create(context: Context, principal: Principal, { name, region }: NewFilesystem) {
  const { db, clock, audit, places, maxPerAccount } = context;
  if (findRegion(region) === undefined) throw regionNotFound(region);
  const { accountId } = principal;
  const disk = await context.ownDisk();
  return db.transaction().execute(async (tx) => {
    await lockAccount(tx, accountId);
    const names = await tx
      .selectFrom('filesystems')
      .select('name')
      .where('account_id', '=', accountId)
      .where('state', '!=', 'deleting')
      .execute();
    if (names.some((one) => one.name === name)) throw filesystemNameTaken(name);
    if (names.length >= maxPerAccount) throw quotaExceeded();
    const host_id = findOnlyHome(places(), region);
    if (disk !== null && host_id === disk.hostId) await checkRoom(tx, disk);
    const creator = await findCreator(tx, principal);
    const row: FilesystemRow = {
      id: newId(),
      account_id: accountId,
      name,
      region,
      host_id,
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
    await tx.insertInto('filesystems').values(row).execute();
    const details = { name, region };
    await audit.record(tx, principal, {
      action: 'filesystem.created',
      resourceId: row.id,
      details,
    });
    return row;
  });
}

/** A filesystem that waits for space would take what other accounts free. */
async function checkRoom(tx: Tx, disk: HostDisk) {
  const { hostId, freeGib, reserveGib, filesystemGib } = disk;
  const onHost = tx.selectFrom('filesystems').where('host_id', '=', hostId);
  const waiting = await countRows(onHost.where('state', '=', 'creating'));
  const promisedGib = waiting * filesystemGib;
  if (freeGib - reserveGib - promisedGib < filesystemGib)
    throw diskReserveReached({ ...disk, promisedGib });
}

async function remove(context: Context, principal: Principal, id: string): Promise<void> {
  const { db, clock, audit } = context;
  const { accountId } = principal;
  await db.transaction().execute(async (tx) => {
    await lockAccount(tx, accountId);
    const details = await tx
      .updateTable('filesystems')
      .set({ state: 'deleting', due_at: clock.now(), attempts: 0 })
      .where('id', '=', id)
      .where('account_id', '=', accountId)
      .where('state', '!=', 'deleting')
      .returning(['name', 'region'])
      .executeTakeFirst();
    if (details === undefined) throw filesystemNotFound();
    if ((await findUsed(tx, accountId)).has(id)) throw filesystemInUse();
    await audit.record(tx, principal, { action: 'filesystem.deleted', resourceId: id, details });
  });
}

/** Ids of filesystems in use. An instance that is terminating still uses its filesystems. */
async function findUsed(db: Database | Tx, accountId: string): Promise<Set<string>> {
  const rows = await db
    .selectFrom('instance_filesystems')
    .innerJoin('instances', 'instances.id', 'instance_filesystems.instance_id')
    .select('filesystem_id')
    .where('account_id', '=', accountId)
    .where('status', '!=', 'terminated')
    .execute();
  return new Set(rows.map(({ filesystem_id }) => filesystem_id));
}

/** The person who is signed in, who created the API key, or who owns the account; the account itself if it has
 * no owner yet. */
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
