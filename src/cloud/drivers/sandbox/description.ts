// Describes this host's isolation for the start-up table and machine types. It must claim only what is
// enforced.

import { availableParallelism } from 'node:os';
import type { DriverReport } from '#cloud/drivers/driver.ts';
import { readMachinesDisk } from '#cloud/drivers/sandbox/disk/disk-space.ts';
import type { SandboxContext } from '#cloud/drivers/sandbox/machine/context.ts';
import { findGpus, toReport } from './gpus.ts';
import type { SandboxHost } from './host.ts';

export async function describeHost(context: SandboxContext): Promise<DriverReport> {
  const { host, machineMemory } = context;
  return {
    isolated: host.mode !== 'none' && host.obstacle === null,
    isolation: describeIsolation(host),
    advice: adviseHost(host),
    network: describeNetwork(host),
    ...(host.obstacle === null &&
      host.networkObstacle !== null && { networkObstacle: host.networkObstacle }),
    vcpus: availableParallelism(),
    memoryGib: Math.max(1, Math.floor(machineMemory / 1024 ** 3)),
    storageGib: await readMachinesDisk(context),
    gpus: toReport(await findGpus()),
  };
}

export function describeIsolation(host: SandboxHost): string {
  if (host.obstacle) return `Machines can't run here: ${host.obstacle}`;
  if (host.mode === 'none') {
    return "NOT ISOLATED: machines are plain processes and see this host's files and network.";
  }
  const ids = host.mappedBind ? 'their own root and ids' : 'their own root, SHARED ids';
  const root = host.mode === 'mapped' ? ids : 'one user and no root';
  const filter = host.confineInit ? 'a seccomp filter' : 'NO seccomp filter';
  const limits = host.controlGroups
    ? `cgroup v${host.controlGroups.version} limits CPU, memory and processes`
    : 'no CPU, memory or process limits';
  const disks = host.diskImages ? 'disk sizes enforced' : 'disks checked every minute';
  return `Linux namespaces with ${root}, ${filter}; ${limits}; ${disks}.`;
}

/** What this host does not enforce but could, each with what it needs. */
export function adviseHost(host: SandboxHost): string[] {
  if (host.obstacle || host.mode === 'none') return [];
  const filter =
    'For the seccomp filter: an x86-64 or 64-bit ARM processor, a kernel with CONFIG_SECCOMP_FILTER, and a data directory without `noexec`.';
  if (host.mode === 'single') {
    const asRoot =
      'Run the server as root: then machines have ids of their own, a root user, a network, and limits on CPU, memory, processes and disks.';
    return host.confineInit ? [asRoot] : [asRoot, filter];
  }
  const ids =
    'For ids of their own: Linux 5.12 or later, and the data directory on ext4, XFS or btrfs.';
  const disks =
    'To enforce disk sizes: `mke2fs` (package e2fsprogs), `flock`, loop devices, and the data directory on ext4, XFS or btrfs.';
  const limits = 'For CPU, memory and process limits: a writable cgroup v1 or v2.';
  return [
    ...(host.confineInit ? [] : [filter]),
    ...(host.mappedBind ? [] : [ids]),
    ...(host.diskImages ? [] : [disks]),
    ...(host.controlGroups ? [] : [limits]),
  ];
}

/** Empty if this host can't run machines. */
export function describeNetwork(host: SandboxHost): string {
  if (host.obstacle) return '';
  if (host.mode === 'none') return 'Firewall rules apply to ssh only.';
  if (host.canRoute) return 'Outbound to the internet, inbound by firewall rules.';
  return 'NO network.';
}
