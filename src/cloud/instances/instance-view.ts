// Instances as the API returns them. Absent values are left out, and each action says whether it is possible
// now and, if not, why.

import { toRegion } from '#cloud/regions.ts';
import type { Instance } from '#cloud/schema.ts';
import type {
  InstanceFilesystemRow,
  InstanceRow,
  InstanceRulesetRow,
} from '#db/tables/cloud-rows.ts';
import type { Database, Tx } from '#db/tables/tables.ts';

interface Attachments {
  filesystems: readonly InstanceFilesystemRow[];
  rulesets: readonly InstanceRulesetRow[];
}

/** Databases limit the parameters of a statement: SQLite to 32,766. */
const idsPerQuery = 1000;

export async function viewInstances(
  db: Database | Tx,
  rows: readonly InstanceRow[],
): Promise<Instance[]> {
  const instances: Instance[] = [];
  for (let from = 0; from < rows.length; from += idsPerQuery) {
    instances.push(...(await viewBatch(db, rows.slice(from, from + idsPerQuery))));
  }
  return instances;
}

async function viewBatch(db: Database | Tx, rows: readonly InstanceRow[]): Promise<Instance[]> {
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

function toInstance(row: InstanceRow, { filesystems, rulesets }: Attachments): Instance {
  const tags = JSON.parse(row.tags) as { key: string; value: string }[];
  const hostname = row.hostname ?? row.ip;
  return {
    id: row.id,
    ...(row.name === null ? {} : { name: row.name }),
    ...(row.ip === null ? {} : { ip: row.ip }),
    ...(row.private_ip === null ? {} : { private_ip: row.private_ip }),
    ...(row.ssh_port === null || row.ssh_port === 22 ? {} : { ssh_port: row.ssh_port }),
    status: toStatus(row),
    ssh_key_names: row.ssh_key_name === '' ? [] : [row.ssh_key_name],
    file_system_names: filesystems.map(({ name }) => name),
    ...(filesystems.length === 0 ? {} : { file_system_mounts: filesystems.map(toMount) }),
    region: toRegion(row.region),
    instance_type: JSON.parse(row.type),
    ...(hostname === null ? {} : { hostname }),
    is_reserved: false,
    actions: toActions(row),
    ...(tags.length === 0 ? {} : { tags }),
    ...(rulesets.length === 0
      ? {}
      : { firewall_rulesets: rulesets.map(({ ruleset_id }) => ({ id: ruleset_id })) }),
  };
}

/** A machine that is being restarted can't be used, so it boots again as far as clients can tell. */
export function toStatus({ status, action }: Pick<InstanceRow, 'status' | 'action'>) {
  return action !== null && (status === 'active' || status === 'unhealthy') ? 'booting' : status;
}

const toMount = ({ filesystem_id, mount_point }: InstanceFilesystemRow) => ({
  mount_point,
  file_system_id: filesystem_id,
});

type Availability = Instance['actions']['restart'];

function toActions(row: InstanceRow): Instance['actions'] {
  const blocked = whyBlocked(row);
  const possible: Availability = blocked ?? { available: true };
  const never: Availability = {
    available: false,
    reason_code: 'vm-action-not-supported',
    reason_description: 'This cloud does not offer it.',
  };
  return {
    migrate: blocked ?? never,
    rebuild: blocked ?? never,
    restart: possible,
    cold_reboot: possible,
    terminate: canTerminate(row) ? { available: true } : possible,
  };
}

/** Why a restart is not possible; undefined if it is. */
export function whyBlocked(row: InstanceRow): Availability | undefined {
  const because = (reason_code: string, reason_description: string) => ({
    available: false,
    reason_code,
    reason_description,
  });
  if (row.status === 'booting') {
    return because('vm-has-not-launched', 'The instance has not launched yet.');
  }
  if (row.status === 'terminating' || row.status === 'terminated') {
    return because('vm-is-terminating', 'The instance is terminating or terminated.');
  }
  if (row.action !== null) {
    return because('vm-action-in-progress', 'Another action on the instance is in progress.');
  }
  return undefined;
}

/** Possible as soon as the machine has been requested from its host, whatever else is in progress. */
const canTerminate = ({ status, asked_at }: InstanceRow) =>
  status === 'active' || status === 'unhealthy' || (status === 'booting' && asked_at !== null);
