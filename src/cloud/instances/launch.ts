// Launches an instance: everything is checked and reserved in one transaction, which leaves either a complete
// instance or nothing. The reconciler creates the machine.

import type { Actor, Audit } from '#accounts/audit/audit.ts';
import {
  imageNotFound,
  invalidParameters,
  quotaExceeded,
  regionNotFound,
  tooManyInstances,
  typeNotFound,
} from '#cloud/errors.ts';
import type { Capacity } from '#cloud/placement/capacity.ts';
import type { Images } from '#cloud/placement/images.ts';
import type { Offer, Offers } from '#cloud/placement/instance-types.ts';
import { type Place, reachesFilesystem } from '#cloud/placement/place.ts';
import { findRegion, regions } from '#cloud/regions.ts';
import { countRows } from '#db/count-rows.ts';
import { lockAccount } from '#db/lock-account.ts';
import type { Database, Tx } from '#db/tables/tables.ts';
import type { Clock } from '#lib/clock.ts';
import { newId } from '#lib/ids.ts';
import type { InstanceEvents } from './instance-events.ts';
import { findMounts, findRulesets, getLaunchKey, type Mount } from './launch-references.ts';
import { type DeploymentOwner, type LaunchInput, toInstanceRow } from './launch-row.ts';

export interface LaunchParts {
  audit: Audit;
  capacity: Capacity;
  events: InstanceEvents;
  images: Images;
  offers(): Offers;
  places(): readonly Place[];
  /** Called after the commit, so that the reconciler doesn't wait for its next tick. */
  nudge(): void;
}

interface Context extends LaunchParts {
  readonly db: Database;
  readonly clock: Clock;
  readonly maxPerAccount: number;
}

const maxUserDataBytes = 1_048_576;

/** Returns the id of the new instance. */
export type LaunchInstance = (
  principal: LaunchActor,
  input: LaunchInput,
  owner?: DeploymentOwner,
) => Promise<string>;

/** The server launches machines of deployments itself. */
export type LaunchActor = Actor & { readonly accountId: string };

export function createLaunch(
  db: Database,
  clock: Clock,
  parts: LaunchParts,
  { maxPerAccount }: { maxPerAccount: number },
): LaunchInstance {
  const context: Context = { db, clock, maxPerAccount, ...parts };
  return async function launch(principal, input, owner) {
    const offer = checkInput(context, input);
    const id = await db
      .transaction()
      .execute((tx) => insert(context, tx, principal, { input, offer, owner }));
    parts.events.publish({ accountId: principal.accountId, instanceId: id, status: 'booting' });
    parts.nudge();
    return id;
  };
}

/** Checks what needs no database. */
function checkInput({ offers, images }: Context, input: LaunchInput): Offer {
  const { region_name: region } = input;
  if ((input.quantity ?? 1) > 1) throw tooManyInstances();
  if (region !== null && findRegion(region) === undefined) throw regionNotFound(region);
  const offer = offers().find(input.instance_type_name);
  if (offer === undefined) throw typeNotFound(input.instance_type_name);
  if (Buffer.byteLength(input.user_data ?? '') > maxUserDataBytes) {
    throw invalidParameters("Error in request body at 'user_data': it is over 1 MB");
  }
  const { image: choice = null } = input;
  const searched = region === null ? regions.map(({ name }) => name) : [region];
  if (!searched.some((name) => images.find(choice, name) !== undefined)) {
    const name = choice === null ? '' : 'id' in choice ? choice.id : choice.family;
    throw imageNotFound(name, region ?? 'any');
  }
  return offer;
}

async function insert(
  context: Context,
  tx: Tx,
  principal: LaunchActor,
  { input, offer, owner }: { input: LaunchInput; offer: Offer; owner: DeploymentOwner | undefined },
): Promise<string> {
  const { clock, images } = context;
  const { accountId } = principal;
  await lockAccount(tx, accountId);
  const [keyName] = input.ssh_key_names;
  const key = keyName === undefined ? null : await getLaunchKey(tx, accountId, keyName);
  // No region has what a deployment could refer to: it refers to nothing.
  const references = { ...input, region_name: input.region_name ?? '' };
  const mounts = await findMounts(tx, accountId, references);
  const rulesetIds = await findRulesets(tx, accountId, references);
  await checkQuota(context, tx, accountId);
  const places = context.places();
  const imageOn = (place: Place) => images.on(place, input.image ?? null);
  const reservation = await context.capacity.reserve(
    tx,
    offer,
    (place) =>
      (input.region_name === null || place.region === input.region_name) &&
      (owner?.isAllowed(place) ?? true) &&
      imageOn(place) !== undefined &&
      mounts.every(({ home }) => reachesFilesystem(place, home, places)),
  );
  const { place, gpus } = reservation;
  const now = clock.now();
  const row = toInstanceRow(owner?.instanceId ?? newId(), accountId, input, {
    owner,
    offer,
    image: imageOn(place),
    key,
    reservation,
    now,
  });
  await tx.insertInto('instances').values(row).execute();
  for (const address of gpus) {
    const held = { host_id: place.hostId, node: place.node ?? '', address, instance_id: row.id };
    await tx.insertInto('instance_gpus').values(held).execute();
  }
  await insertMounts(tx, row.id, mounts, { place, now });
  for (const ruleset_id of rulesetIds) {
    await tx.insertInto('instance_rulesets').values({ instance_id: row.id, ruleset_id }).execute();
  }
  const details = {
    instance_lrn: `lrn:cloud:instance:${row.id}`,
    instance_type: offer.type.name,
    region: row.region,
  };
  const action = 'instance.created';
  await context.audit.record(tx, principal, { action, resourceId: row.id, details });
  await owner?.writeRows(tx, row);
  return row.id;
}

async function checkQuota({ maxPerAccount }: Context, tx: Tx, accountId: string): Promise<void> {
  const own = tx.selectFrom('instances').where('account_id', '=', accountId);
  if ((await countRows(own.where('status', '!=', 'terminated'))) >= maxPerAccount)
    throw quotaExceeded();
}

/** A filesystem that is on no host yet is created where its first instance is, and stays there. */
async function insertMounts(
  tx: Tx,
  instanceId: string,
  mounts: readonly Mount[],
  { place, now }: { place: Place; now: number },
): Promise<void> {
  for (const { home, ...mount } of mounts) {
    await tx
      .insertInto('instance_filesystems')
      .values({ instance_id: instanceId, ...mount })
      .execute();
    if (home.host_id !== null) continue;
    await tx
      .updateTable('filesystems')
      .set({
        host_id: place.hostId,
        node: place.sharesFilesystems ? null : place.node,
        state: 'creating',
        due_at: now,
      })
      .where('id', '=', mount.filesystem_id)
      .execute();
  }
}
