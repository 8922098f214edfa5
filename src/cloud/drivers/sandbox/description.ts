// What people are told about isolation on this host: in the start-up table and wherever machine types
// are described. Only what is enforced is claimed.

import { statfs } from 'node:fs/promises';
import { availableParallelism, totalmem } from 'node:os';
import type { DriverReport } from '../driver.ts';
import { findGpus, toReport } from './gpus.ts';
import type { Host } from './host.ts';
import type { Yard } from './life-cycle.ts';

export async function describeHost({ host, dataDir }: Yard): Promise<DriverReport> {
  const disk = await statfs(dataDir);
  return {
    isolated: host.mode !== 'none' && host.obstacle === null,
    isolation: describeIsolation(host),
    network: describeNetwork(host),
    vcpus: availableParallelism(),
    memoryGib: Math.floor(totalmem() / 1024 ** 3),
    storageGib: Math.floor((disk.bavail * disk.bsize) / 1024 ** 3),
    gpus: toReport(await findGpus()),
  };
}

export function describeIsolation(host: Host): string {
  if (host.obstacle) return `Machines can't be made here: ${host.obstacle}`;
  if (host.mode === 'none') {
    return 'NOT ISOLATED: machines are plain processes of this host and see its files and network.';
  }
  const limits = host.controlGroups
    ? `CPU, memory and process limits by cgroup v${host.controlGroups.version}`
    : 'no CPU, memory or process limits';
  const root = host.mode === 'mapped' ? 'a root of their own' : 'one user and no root';
  return `Linux namespaces (user, process, mount, network) with ${root}, ${limits}; disk size is not limited.`;
}

export function describeNetwork(host: Host): string {
  if (host.mode === 'none') return "Machines share this host's network; rules are not enforced.";
  if (host.canRoute) {
    return 'Each machine has its own interface: outbound to the internet, inbound by its firewall rules (nftables).';
  }
  const reason = host.mode === 'mapped' ? '`ip` or `nft` is missing' : 'the server is not root';
  return `Machines have their own loopback and no outbound network, because ${reason}; reach them by ssh and its forwardings.`;
}
