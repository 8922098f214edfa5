// Hosts that the configuration file names. Their rows follow the file; one that left it keeps its row until
// somebody removes it, because it may have machines.

import type { Database } from '#db/tables.ts';
import type { Clock } from '#lib/clock.ts';
import { StartError } from '#lib/start-error.ts';
import { toRow } from './host-changes.ts';
import type { HostExtras } from './host-drivers.ts';

export interface FileHost extends HostExtras {
  readonly name: string;
  readonly region: string;
  readonly url: string;
  readonly fingerprint?: string | null;
  readonly target?: string | null;
  readonly pool?: string | null;
  readonly network?: string | null;
  readonly project?: string | null;
  readonly filesystems_path?: string | null;
}

export async function ensureFileHosts(
  db: Database,
  clock: Clock,
  hosts: readonly FileHost[],
): Promise<void> {
  for (const [index, host] of hosts.entries()) {
    const fingerprint = host.fingerprint?.toLowerCase().replaceAll(':', '') ?? null;
    // Of two hosts that have one node the older has it: that is the first in the file.
    const row = toRow(host, { url: host.url, fingerprint }, clock.now() + index);
    const { region, driver, url, target, pool, network, project, filesystems_path } = row;
    const { profiles, addresses, mig, default_image } = host;
    const settings = {
      extras: JSON.stringify({ profiles, addresses, mig, default_image }),
      region,
      driver,
      url,
      fingerprint,
      target,
      pool,
      network,
      project,
      filesystems_path,
      source: 'file' as const,
    };
    const written = await db
      .insertInto('hosts')
      .values({ ...row, ...settings })
      .onConflict((clash) =>
        clash.column('name').doUpdateSet(settings).where('hosts.source', '!=', 'builtin'),
      )
      .returning('id')
      .executeTakeFirst();
    if (written === undefined) {
      throw new StartError(
        `cloud.hosts: ${host.name} is the name of a server's own host. Choose another, or set cloud.host_name.`,
      );
    }
  }
}
