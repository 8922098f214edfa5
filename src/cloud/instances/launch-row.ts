// The row of a new instance.

import type { PlaceReservation } from '#cloud/placement/capacity.ts';
import type { Images } from '#cloud/placement/images.ts';
import type { Offer } from '#cloud/placement/instance-types.ts';
import type { Place } from '#cloud/placement/place.ts';
import type { Launch, Tag } from '#cloud/schema.ts';
import type { InstanceRow, SshKeyRow } from '#db/tables/cloud-rows.ts';
import type { Tx } from '#db/tables/tables.ts';

/** A null region is any region. Without an SSH key nobody may log in. */
export type LaunchInput = Omit<Launch, 'region_name'> & { readonly region_name: string | null };

/** The deployment that an instance is launched for. */
export interface DeploymentOwner {
  readonly deploymentId: string;
  /** The id for the instance. */
  readonly instanceId: string;
  /** Path on this computer of what the machine sees as its weights; null if there are none. */
  readonly weights: string | null;
  isAllowed(place: Place): boolean;
  /** Writes further rows in the transaction of the launch. */
  writeRows(tx: Tx, instance: InstanceRow): Promise<void>;
}

export interface LaunchFindings {
  readonly offer: Offer;
  readonly image: ReturnType<Images['on']>;
  /** Null if nobody may log in. */
  readonly key: SshKeyRow | null;
  readonly owner: Pick<DeploymentOwner, 'deploymentId' | 'weights'> | undefined;
  readonly reservation: PlaceReservation;
  readonly now: number;
}

export function toInstanceRow(
  id: string,
  accountId: string,
  input: LaunchInput,
  { offer, image, key, owner, reservation, now }: LaunchFindings,
): InstanceRow {
  const { place, address } = reservation;
  return {
    id,
    account_id: accountId,
    name: input.name || null,
    status: 'booting',
    status_reason: null,
    region: place.region,
    host_id: place.hostId,
    node: place.node,
    host_silent: 0,
    type: JSON.stringify(offer.type),
    type_name: offer.type.name,
    price_cents_per_hour: offer.type.price_cents_per_hour,
    // Never null here: an offer without a pool fits nowhere, so the reservation has failed.
    pool: offer.pool ?? 'emulated',
    // Only emulated types can have more vCPUs and memory than their place.
    vcpus: Math.min(offer.vcpus, place.vcpus),
    memory_gib: Math.min(offer.memoryGib, place.memoryGib),
    storage_gib: offer.storageGib,
    ssh_key_id: key?.id ?? '',
    ssh_key_name: key?.name ?? '',
    ssh_public_key: key?.public_key ?? '',
    hostname: input.hostname ?? null,
    image_id: image?.id ?? '',
    image: image?.name ?? 'host',
    user_data: input.user_data || null,
    tags: toTagsText(input.tags ?? []),
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
    deployment_id: owner?.deploymentId ?? null,
    weights: owner?.weights ?? null,
  };
}

export const toTagsText = (tags: readonly Tag[]) =>
  JSON.stringify(tags.map(({ key, value }) => ({ key, value })));
