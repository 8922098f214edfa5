// Builds the driver's specification of a machine from the rows of its instance.

import { DriverError, type MachineSpec } from '#cloud/drivers/driver.ts';
import type { InstanceFirewall } from '#cloud/resources/firewall.ts';
import { toPlainPath } from '#cloud/resources/mount-point.ts';
import { listRefusedKeys, toBareKey } from '#cloud/resources/ssh-access.ts';
import type { InstanceRow } from '#db/tables/cloud-rows.ts';
import type { Database } from '#db/tables/tables.ts';
import type { Seal } from '#lib/secrets/seal.ts';

export interface SpecParts {
  readonly db: Database;
  readonly firewall: InstanceFirewall;
  readonly seal: Seal;
}

/** Throws DriverError if the user data can't be decrypted. */
export async function loadSpec(
  { db, firewall, seal }: SpecParts,
  row: InstanceRow,
): Promise<MachineSpec> {
  const gpus = await db
    .selectFrom('instance_gpus')
    .select('address')
    .where('instance_id', '=', row.id)
    .orderBy('address')
    .execute();
  const filesystems = await db
    .selectFrom('instance_filesystems')
    .select(['filesystem_id', 'mount_point'])
    .where('instance_id', '=', row.id)
    .orderBy('mount_point')
    .execute();
  const refusedKeys = await listRefusedKeys(db, row.account_id);
  const isAccepted =
    row.ssh_public_key !== '' && !refusedKeys.includes(toBareKey(row.ssh_public_key));
  return {
    id: row.id,
    account: row.account_id,
    node: row.node,
    hostname: row.hostname ?? defaultHostname(row),
    ip: row.address || null,
    vcpus: row.vcpus,
    memoryGib: row.memory_gib,
    storageGib: row.storage_gib,
    gpus: gpus.map(({ address }) => address),
    authorizedKeys: isAccepted ? [row.ssh_public_key] : [],
    refusedKeys,
    filesystems: filesystems.map(({ filesystem_id, mount_point }) => ({
      id: filesystem_id,
      mountPoint: toPlainPath(mount_point),
    })),
    userData: readUserData(seal, row),
    runsEngine: row.deployment_id !== null,
    weights: row.weights,
    image: row.image,
    firewall: await firewall.rulesOf(row),
  };
}

const defaultHostname = ({ id, address }: InstanceRow) =>
  address === '' ? `i-${id.slice(0, 8)}` : address.replaceAll('.', '-');

/** That of a deployment has secrets, so it is sealed. */
function readUserData(seal: Seal, row: InstanceRow): string | null {
  if (row.deployment_id === null || row.user_data === null) return row.user_data;
  if (row.status === 'terminating') return null;
  try {
    return seal.open(row.user_data, row.id);
  } catch (error) {
    const message = 'A server with another secret_key (MILLRACE_SECRET_KEY) launched this machine.';
    throw new DriverError('impossible', message, error);
  }
}
