// The uplink of the accounts' private networks: OVN routers want one, and this one must lead nowhere, so that nothing
// enters a private network by its router.

import { DriverError } from '#cloud/drivers/driver.ts';
import type { DaemonClient } from '#cloud/drivers/incus/daemon/client.ts';
import type { Flavor } from '#cloud/drivers/incus/daemon/flavor.ts';

interface Network {
  readonly type: string;
  readonly managed: boolean;
  readonly config: Readonly<Record<string, string>>;
}

/** Throws DriverError if the networks of accounts can't be created on this uplink. */
export async function checkUplink(
  client: DaemonClient,
  { command }: Flavor,
  uplink: string,
): Promise<void> {
  const found = await client.find<Network>(`/1.0/networks/${encodeURIComponent(uplink)}`);
  const create = `${command} network create ${uplink} --type=physical`;
  if (!found?.managed) {
    throw new DriverError(
      'unavailable',
      `The endpoint has no network "${uplink}", which ovn_uplink names. Create it with \`${create} parent=BRIDGE --target=NODE\` for every node, then \`${create}\`.`,
    );
  }
  if (found.type !== 'physical') {
    const message = `Network "${uplink}" has the type ${found.type}, but ovn_uplink needs one that \`${create}\` creates.`;
    throw new DriverError('unavailable', message);
  }
  const [way] = ['ipv4.gateway', 'ipv6.gateway'].filter((key) => found.config[key] !== undefined);
  if (way === undefined) return;
  const message = `Network "${uplink}" has a gateway, by which packets from outside could enter private networks. Remove it with \`${command} network unset ${uplink} ${way}\`.`;
  throw new DriverError('unavailable', message);
}
