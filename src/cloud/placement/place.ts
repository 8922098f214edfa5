// A place is one node of one host: where an instance can be. How a node is divided between GPU and CPU
// instances, and which filesystems a place reaches. Pure: no rows, no drivers.

import type { DriverReport, ImageReport, NodeReport } from '#cloud/drivers/driver.ts';

export interface Place extends Omit<NodeReport, 'name' | 'online'> {
  readonly hostId: string;
  readonly hostName: string;
  readonly region: string;
  /** Null if the host is a single computer. */
  readonly node: string | null;
  /** False while the host is silent or draining, or the node is offline. */
  readonly accepting: boolean;
  readonly isolated: boolean;
  /** Null if the driver chooses addresses; undefined for the loopback range of the computer. */
  readonly addressPool: DriverReport['addressPool'];
  /** Ids of all hosts that allocate from the same pool, this one included: groups of one cluster are hosts. */
  readonly poolHosts: readonly string[];
  /** Null if the host boots its own system, under any image name. */
  readonly images: readonly ImageReport[] | null;
  /** The operator's choice for launches that name no image. */
  readonly defaultImage: string | null;
  /** vCPUs that CPU instances may have together for each one that the node has. Default: 1. */
  readonly overcommit?: number;
  /** True if the place has the directory that the hosts of its region share. */
  readonly sharesFilesystems: boolean;
}

export interface NodeSplit {
  readonly gpuVcpus: number;
  readonly gpuMemoryGib: number;
  readonly cpuVcpus: number;
  /** vCPUs that CPU instances may have together; more than `cpuVcpus` if they are over-committed. */
  readonly sharedVcpus: number;
  readonly cpuMemoryGib: number;
}

/** Each GPU comes with its share of half the node. Otherwise a few small CPU instances could strand it. */
export function splitNode({
  vcpus,
  memoryGib,
  gpus,
  overcommit = 1,
}: Pick<Place, 'vcpus' | 'memoryGib' | 'gpus' | 'overcommit'>): NodeSplit {
  const count = gpus.length;
  const gpuVcpus = count === 0 ? 0 : Math.max(1, Math.floor(vcpus / 2 / count));
  const gpuMemoryGib = count === 0 ? 0 : Math.max(1, Math.floor(memoryGib / 2 / count));
  const cpuVcpus = Math.max(1, vcpus - count * gpuVcpus);
  return {
    gpuVcpus,
    gpuMemoryGib,
    cpuVcpus,
    sharedVcpus: Math.floor(cpuVcpus * overcommit),
    cpuMemoryGib: Math.max(1, memoryGib - count * gpuMemoryGib),
  };
}

/** The host of a new filesystem. Null if there is a choice: the first instance that mounts it decides. */
export function findOnlyHome(places: readonly Place[], region: string): string | null {
  const here = places.filter((place) => place.region === region);
  const [only] = here;
  if (only === undefined || here.some(({ hostId }) => hostId !== only.hostId)) return null;
  return here.length === 1 || only.sharesFilesystems ? only.hostId : null;
}

/** Whether an instance at the place can mount a filesystem whose volume is on the given host and node. */
export function reachesFilesystem(
  place: Place,
  home: { readonly host_id: string | null; readonly node: string | null },
  places: readonly Place[],
): boolean {
  if (home.host_id === null) return true;
  if (home.host_id !== place.hostId) {
    const shared = places.some(
      ({ hostId, sharesFilesystems }) => hostId === home.host_id && sharesFilesystems,
    );
    return shared && place.sharesFilesystems;
  }
  return home.node === null || home.node === place.node || place.sharesFilesystems;
}
