// Resolves what a launch refers to by name or id: its SSH key, its filesystems and its firewall rulesets.

import {
  invalidParameters,
  launchFilesystemNotFound,
  launchKeyNotFound,
  rulesetNotFound,
} from '#cloud/errors.ts';
import { toMountPoint, toPlainPath } from '#cloud/resources/mount-point.ts';
import type { Launch } from '#cloud/schema.ts';
import { toId } from '#cloud/wire.ts';
import type { FilesystemRow, SshKeyRow } from '#db/tables/cloud-rows.ts';
import type { Tx } from '#db/tables/tables.ts';

type Home = Pick<FilesystemRow, 'host_id' | 'node'>;

export interface Mount {
  filesystem_id: string;
  name: string;
  mount_point: string;
  /** Where the filesystem is. */
  home: Home;
}

export async function getLaunchKey(tx: Tx, accountId: string, name: string): Promise<SshKeyRow> {
  const row = await tx
    .selectFrom('ssh_keys')
    .selectAll()
    .where('account_id', '=', accountId)
    .where('name', '=', name)
    .executeTakeFirst();
  if (row === undefined) throw launchKeyNotFound(name);
  return row;
}

/** Filesystems by name and by id. If one is in both lists, the given mount point takes precedence. */
export async function findMounts(tx: Tx, accountId: string, input: Launch): Promise<Mount[]> {
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

const toMount = (row: Home & { id: string; name: string }, mount_point: string): Mount => ({
  filesystem_id: row.id,
  name: row.name,
  mount_point,
  home: { host_id: row.host_id, node: row.node },
});

export async function findRulesets(tx: Tx, accountId: string, input: Launch): Promise<string[]> {
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
