// Hosts from the configuration file. Their rows follow the file. A host that is no longer in the file keeps
// its row until an operator removes it, because it may have instances.

import type { Database } from '#db/tables/tables.ts';
import type { Clock } from '#lib/clock.ts';
import { newId } from '#lib/ids.ts';
import { StartError } from '#lib/start-error.ts';
import { type HostExtras, toEndpointColumns, toHostRow, toPlainFingerprint } from './host.ts';

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
    const { profiles, addresses, ovn_uplink, mig, default_image } = host;
    const settings = {
      ...toEndpointColumns(host),
      url: host.url,
      fingerprint: toPlainFingerprint(host.fingerprint),
      extras: JSON.stringify({ profiles, addresses, ovn_uplink, mig, default_image }),
      source: 'file' as const,
    };
    // Where two hosts share a node, the older host has it: the first in the file must be the oldest.
    const row = toHostRow({ id: newId(), ...settings, created_at: clock.now() + index });
    const written = await db
      .insertInto('hosts')
      .values(row)
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
