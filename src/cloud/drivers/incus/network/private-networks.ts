// The private network of an account: an OVN network that spans all nodes of the endpoint and that
// only machines of the account are on. A network of its own, rather than ACLs on a shared one:
// there, LXD lets ARP, TCP resets and ICMP errors of every machine pass, and machines accept forged
// ARP replies of another account.

import { setTimeout } from 'node:timers/promises';
import { DriverError, type MachineSpec } from '#cloud/drivers/driver.ts';
import type { IncusContext } from '#cloud/drivers/incus/context.ts';
import type { DaemonClient } from '#cloud/drivers/incus/daemon/client.ts';
import { DaemonError } from '#cloud/drivers/incus/daemon/daemon-response.ts';
import { type AddressPlan, planAddresses } from './addresses.ts';

interface Network {
  readonly status?: string;
  readonly used_by?: readonly string[] | null;
}

/** How long another process may take to create a network before its attempt counts as broken off. */
const creationMs = 30_000;
const pollMs = 200;

/** Says what the machine waits for, or null. A daemon creates networks only while all members are online. */
export async function findWaitReason(
  { client, info, owner, ovnUplink }: IncusContext,
  { account }: MachineSpec,
): Promise<string | null> {
  if (ovnUplink === null || account === undefined || !info.environment?.server_clustered)
    return null;
  const network = await client.find<Network>(networkPath(toName(owner, account)));
  if (network?.status === 'Created') return null;
  type Member = { readonly server_name: string; readonly status: string };
  const members = await client.get<Member[]>('/1.0/cluster/members', { recursion: '1' });
  const offline = members.filter(({ status }) => status === 'Offline');
  if (offline.length === 0) return null;
  const names = offline.map(({ server_name }) => server_name).join(', ');
  return `waiting for ${names}: the first machine of an account needs all nodes online, for the private network`;
}

/** Returns the addresses of the account's network, which is created if need be; undefined if there is none. */
export async function providePrivateNetwork(
  context: IncusContext,
  spec: MachineSpec,
): Promise<AddressPlan | undefined> {
  const { client, locks, owner, ovnUplink, unusedNetworks } = context;
  if (ovnUplink === null || spec.account === undefined) return undefined;
  // An attempt in vain would leave a network that can't be removed either.
  const reason = await findWaitReason(context, spec);
  if (reason !== null) throw new DriverError('unavailable', reason);
  const name = toName(owner, spec.account);
  await locks.run(name, async () => {
    await ensureNetwork(client, name, ovnUplink);
    // The next call of sweepPrivateNetworks leaves it: the machine is not on it yet.
    unusedNetworks.delete(name);
  });
  return planAddresses(client, name);
}

async function ensureNetwork(client: DaemonClient, name: string, uplink: string): Promise<void> {
  const path = networkPath(name);
  const deadline = performance.now() + creationMs;
  let found = await client.find<Network>(path);
  while (found && found.status !== 'Created' && performance.now() < deadline) {
    await setTimeout(pollMs);
    found = await client.find<Network>(path);
  }
  if (found?.status === 'Created') return;
  // The state is the same while a process creates it and after that was broken off. It can't be continued.
  if (found) await client.run('DELETE', path);
  const body = {
    name,
    type: 'ovn',
    description: 'Private network of one Millrace account',
    config: { network: uplink, 'ipv4.nat': 'true', 'ipv6.address': 'none' },
  };
  try {
    await client.run('POST', '/1.0/networks', { body });
  } catch (error) {
    // Another server may have been faster.
    const made = await client.find<Network>(path);
    if (made?.status !== 'Created') throw error;
  }
}

/** Removes the networks of this installation that no machine has used since the last call. */
export async function sweepPrivateNetworks(context: IncusContext): Promise<void> {
  const { client, locks, owner, unusedNetworks } = context;
  const paths = await client.get<string[]>('/1.0/networks');
  const names = paths
    .map((path) => /\/networks\/([^/?]+)/.exec(path)?.[1] ?? '')
    .filter((name) => name.startsWith(toName(owner, '')));
  for (const name of unusedNetworks) if (!names.includes(name)) unusedNetworks.delete(name);
  for (const name of names) await locks.run(name, () => sweepNetwork(context, name));
}

async function sweepNetwork({ client, unusedNetworks }: IncusContext, name: string): Promise<void> {
  const found = await client.find<Network>(networkPath(name));
  if (!found || (found.used_by ?? []).length > 0) unusedNetworks.delete(name);
  else if (unusedNetworks.has(name))
    await client.run('DELETE', networkPath(name)).catch(leaveForLater);
  else unusedNetworks.add(name);
}

/** While a member is offline, the daemon removes no network. The next call tries again. */
function leaveForLater(error: unknown) {
  if (!(error instanceof DaemonError)) throw error;
}

const toName = (owner: string, account: string) => `millrace-${owner.slice(0, 12)}-${account}`;

const networkPath = (name: string) => `/1.0/networks/${encodeURIComponent(name)}`;
