// Launching: everything is checked and reserved in one transaction that leaves either a whole instance or
// nothing. The machine itself is the reconciler's work.

import type { Audit } from '#accounts/audit.ts';
import type { Principal } from '#accounts/principal.ts';
import {
  imageNotFound,
  invalidParameters,
  launchFilesystemNotFound,
  launchKeyNotFound,
  quotaExceeded,
  regionNotFound,
  rulesetNotFound,
  tooManyInstances,
  typeNotFound,
} from '#cloud/errors.ts';
import type { Capacity, Reserved } from '#cloud/placement/capacity.ts';
import type { Images } from '#cloud/placement/images.ts';
import type { Offer, Offers } from '#cloud/placement/instance-types.ts';
import { type Place, reachesFilesystem } from '#cloud/placement/placement.ts';
import { findRegion } from '#cloud/regions.ts';
import type { Launch } from '#cloud/schema.ts';
import { toId } from '#cloud/wire-id.ts';
import type { FilesystemRow, InstanceRow } from '#db/cloud-rows.ts';
import { lockAccount } from '#db/lock-account.ts';
import type { Database, SshKeyRow, Tx } from '#db/tables.ts';
import type { Clock } from '#lib/clock.ts';
import { newId } from '#lib/ids.ts';
import type { InstanceEvents } from './instance-events.ts';

export interface LaunchParts {
  audit: Audit;
  capacity: Capacity;
  events: InstanceEvents;
  images: Images;
  offers(): Offers;
  places(): readonly Place[];
  /** Called after commit, so that the reconciler needn't wait for its next look. */
  nudge(): void;
}

export interface LaunchOptions {
  maxPerAccount: number;
}

type PlaceImage = ReturnType<Images['on']>;

const maxUserDataBytes = 1_048_576;

export type LaunchInstance = (principal: Principal, input: Launch) => Promise<string>;

export function createLaunch(
  db: Database,
  clock: Clock,
  parts: LaunchParts,
  options: LaunchOptions,
): LaunchInstance {
  return async function launch(principal, input) {
    const offer = check(input);
    const imageOn = (place: Place) => parts.images.on(place, input.image ?? null);
    const id = newId();
    await db.transaction().execute(async (tx) => {
      const { accountId } = principal;
      await lockAccount(tx, accountId);
      const key = await findKey(tx, accountId, input.ssh_key_names[0] ?? '');
      const mounts = await findMounts(tx, accountId, input);
      const rulesetIds = await findRulesets(tx, accountId, input);
      await checkQuota(tx, accountId);
      const places = parts.places();
      const reserved = await parts.capacity.take(
        tx,
        offer,
        (place) =>
          place.region === input.region_name &&
          imageOn(place) !== undefined &&
          mounts.every(({ home }) => reachesFilesystem(place, home, places)),
      );
      const { place, gpus } = reserved;
      const row = toRow(id, principal, input, { offer, image: imageOn(place), key, reserved });
      await tx.insertInto('instances').values(row).execute();
      for (const address of gpus) {
        const held = { host_id: place.hostId, node: place.node ?? '', address, instance_id: id };
        await tx.insertInto('instance_gpus').values(held).execute();
      }
      for (const { home, ...mount } of mounts) {
        await tx
          .insertInto('instance_filesystems')
          .values({ instance_id: id, ...mount })
          .execute();
        if (home.host_id === null) {
          await settleFilesystem(tx, mount.filesystem_id, place, clock.now());
        }
      }
      for (const ruleset_id of rulesetIds) {
        await tx.insertInto('instance_rulesets').values({ instance_id: id, ruleset_id }).execute();
      }
      const details = {
        instance_lrn: `lrn:cloud:instance:${id}`,
        instance_type: offer.type.name,
        region: input.region_name,
      };
      await parts.audit.record(tx, principal, {
        action: 'instance.created',
        resourceId: id,
        details,
      });
    });
    parts.events.publish({ accountId: principal.accountId, instanceId: id, status: 'booting' });
    parts.nudge();
    return id;
  };

  /** What needs no database. */
  function check(input: Launch): Offer {
    if ((input.quantity ?? 1) > 1) throw tooManyInstances();
    if (findRegion(input.region_name) === undefined) throw regionNotFound(input.region_name);
    const offer = parts.offers().find(input.instance_type_name);
    if (offer === undefined) throw typeNotFound(input.instance_type_name);
    if (Buffer.byteLength(input.user_data ?? '') > maxUserDataBytes) {
      throw invalidParameters("Error in request body at 'user_data': it is over 1 MB");
    }
    const image = parts.images.find(input.image ?? null, input.region_name);
    if (image === undefined) {
      const { image: choice } = input;
      const name = choice == null ? '' : 'id' in choice ? choice.id : choice.family;
      throw imageNotFound(name, input.region_name);
    }
    return offer;
  }

  async function checkQuota(tx: Tx, accountId: string) {
    const { count } = await tx
      .selectFrom('instances')
      .select((row) => row.fn.countAll<number>().as('count'))
      .where('account_id', '=', accountId)
      .where('status', '!=', 'terminated')
      .executeTakeFirstOrThrow();
    if (count >= options.maxPerAccount) throw quotaExceeded();
  }

  function toRow(
    id: string,
    { accountId }: Principal,
    input: Launch,
    found: { offer: Offer; image: PlaceImage; key: SshKeyRow; reserved: Reserved },
  ): InstanceRow {
    const { offer, image, key, reserved } = found;
    const { place, address } = reserved;
    const now = clock.now();
    return {
      id,
      account_id: accountId,
      name: input.name || null,
      status: 'booting',
      status_reason: null,
      region: input.region_name,
      host_id: place.hostId,
      node: place.node,
      host_silent: 0,
      type: JSON.stringify(offer.type),
      type_name: offer.type.name,
      price_cents_per_hour: offer.type.price_cents_per_hour,
      // An offer without a pool never fits, so capacity has refused it by now.
      pool: offer.pool ?? 'emulated',
      // Only emulated types can be larger than their place.
      vcpus: Math.min(offer.vcpus, place.vcpus),
      memory_gib: Math.min(offer.memoryGib, place.memoryGib),
      storage_gib: Math.min(offer.storageGib, place.storageGib),
      ssh_key_id: key.id,
      ssh_key_name: key.name,
      ssh_public_key: key.public_key,
      hostname: input.hostname ?? null,
      image_id: image?.id ?? '',
      image: image?.name ?? 'host',
      user_data: input.user_data || null,
      tags: JSON.stringify(
        (input.tags ?? []).map(({ key: name, value }) => ({ key: name, value })),
      ),
      address,
      ip: null,
      private_ip: null,
      ssh_port: null,
      action: null,
      action_started_at: null,
      firewall_stale: 0,
      launched_at: now,
      asked_at: null,
      booted_at: null,
      terminated_at: null,
      version: 0,
      due_at: now,
      claim: null,
      claimed_until: 0,
      attempts: 0,
      last_error: null,
    };
  }
}

async function findKey(tx: Tx, accountId: string, name: string): Promise<SshKeyRow> {
  const row = await tx
    .selectFrom('ssh_keys')
    .selectAll()
    .where('account_id', '=', accountId)
    .where('name', '=', name)
    .executeTakeFirst();
  if (row === undefined) throw launchKeyNotFound(name);
  return row;
}

type Home = Pick<FilesystemRow, 'host_id' | 'node'>;

interface Mount {
  filesystem_id: string;
  name: string;
  mount_point: string;
  home: Home;
}

const toMount = (row: Home & { id: string; name: string }, mount_point: string): Mount => ({
  filesystem_id: row.id,
  name: row.name,
  mount_point,
  home: { host_id: row.host_id, node: row.node },
});

/** Where its first machine is, there a filesystem stays. */
async function settleFilesystem(tx: Tx, id: string, place: Place, now: number): Promise<void> {
  await tx
    .updateTable('filesystems')
    .set({
      host_id: place.hostId,
      node: place.sharesFilesystems ? null : place.node,
      state: 'creating',
      due_at: now,
    })
    .where('id', '=', id)
    .execute();
}

/** Filesystems by name and by id; for one in both lists the given mount point wins. */
async function findMounts(tx: Tx, accountId: string, input: Launch) {
  const { region_name: region } = input;
  const rows = await tx
    .selectFrom('filesystems')
    .select(['id', 'name', 'host_id', 'node'])
    .where('account_id', '=', accountId)
    .where('region', '=', region)
    .where('state', '!=', 'deleting')
    .execute();
  const mounts = new Map<string, Mount>();
  for (const name of input.file_system_names ?? []) {
    const row = rows.find((one) => one.name === name);
    if (row === undefined) throw launchFilesystemNotFound(name, region);
    mounts.set(row.id, toMount(row, toMountPoint(name)));
  }
  for (const { file_system_id, mount_point } of input.file_system_mounts ?? []) {
    const row = rows.find(({ id }) => id === toId(file_system_id));
    if (row === undefined) throw launchFilesystemNotFound(file_system_id, region);
    mounts.set(row.id, toMount(row, mount_point));
  }
  const paths = [...mounts.values()].map(({ mount_point }) => toPlainPath(mount_point));
  if (new Set(paths).size < paths.length) {
    throw invalidParameters(
      "Error in request body at 'file_system_mounts': two filesystems have the same mount point",
    );
  }
  return [...mounts.values()];
}

export const toMountPoint = (name: string) => `/lambda/nfs/${name}`;

/** `/data//x/` and `/data/x` are one place. */
export const toPlainPath = (path: string) => path.replaceAll(/\/+/g, '/').replace(/\/$/, '');

async function findRulesets(tx: Tx, accountId: string, input: Launch): Promise<string[]> {
  const ids = [...new Set((input.firewall_rulesets ?? []).map(({ id }) => toId(id)))];
  for (const id of ids) {
    const row = await tx
      .selectFrom('firewall_rulesets')
      .select('region')
      .where('id', '=', id)
      .where('account_id', '=', accountId)
      .executeTakeFirst();
    if (row === undefined) throw rulesetNotFound();
    if (row.region !== input.region_name) {
      throw invalidParameters(
        `Error in request body at 'firewall_rulesets': ruleset ${id} is in region ${row.region}`,
      );
    }
  }
  return ids;
}
