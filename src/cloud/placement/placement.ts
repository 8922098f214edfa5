// Where a machine goes. A place is one node of one host; a machine fits on a place or it doesn't, whatever
// the sum of all places may be. CPU machines are spread, GPU machines are packed. Pure: no rows, no drivers.

import type { DriverReport, ImageReport, NodeReport } from '#cloud/drivers/driver.ts';
import type { Offer } from './instance-types.ts';

export interface Place extends Omit<NodeReport, 'name' | 'online'> {
  readonly hostId: string;
  readonly hostName: string;
  readonly region: string;
  /** Null where the host is one computer. */
  readonly node: string | null;
  /** False: silent, draining or switched off. */
  readonly accepting: boolean;
  readonly isolated: boolean;
  /** Null: the driver chooses. Undefined: the loopback range of its computer. */
  readonly addressPool: DriverReport['addressPool'];
  /** Hosts that hand out of the same pool, this one among them: groups of one cluster are hosts. */
  readonly poolHosts: readonly string[];
  /** Null: it boots its own system, under any name. */
  readonly images: readonly ImageReport[] | null;
  /** What the operator would have machines boot that name no image. */
  readonly defaultImage: string | null;
  /** It has the directory that hosts of its region share. */
  readonly sharesFilesystems: boolean;
}

/** What living machines hold of one place. */
export interface Taken {
  readonly vcpus: number;
  readonly memoryGib: number;
  readonly gpus: ReadonlySet<string>;
}

export interface Split {
  readonly gpuVcpus: number;
  readonly gpuMemoryGib: number;
  readonly cpuVcpus: number;
  readonly cpuMemoryGib: number;
}

/** Each GPU comes with its share of half the node; else a few small CPU machines would strand it. */
export function splitNode({
  vcpus,
  memoryGib,
  gpus,
}: Pick<Place, 'vcpus' | 'memoryGib' | 'gpus'>): Split {
  const count = gpus.length;
  const gpuVcpus = count === 0 ? 0 : Math.max(1, Math.floor(vcpus / 2 / count));
  const gpuMemoryGib = count === 0 ? 0 : Math.max(1, Math.floor(memoryGib / 2 / count));
  return {
    gpuVcpus,
    gpuMemoryGib,
    cpuVcpus: Math.max(1, vcpus - count * gpuVcpus),
    cpuMemoryGib: Math.max(1, memoryGib - count * gpuMemoryGib),
  };
}

/** Emulated machines have a limit of their own, which is not of any place. */
export function fits(offer: Offer, place: Place, taken: Taken): boolean {
  if (!place.accepting) return false;
  switch (offer.pool) {
    case 'cpu': {
      const { cpuVcpus, cpuMemoryGib } = splitNode(place);
      return (
        taken.vcpus + offer.vcpus <= cpuVcpus && taken.memoryGib + offer.memoryGib <= cpuMemoryGib
      );
    }
    case 'gpu':
      return freeGpus(offer, place, taken).length >= offer.type.specs.gpus;
    default:
      return offer.pool === 'emulated';
  }
}

export function freeGpus({ gpuModel }: Offer, place: Place, { gpus }: Taken): string[] {
  return place.gpus
    .filter(({ model, address }) => model === gpuModel && isFree(address, gpus))
    .map(({ address }) => address);
}

/** A slice's address is its GPU's and then its own: who has the one has a part of the other. */
function isFree(address: string, taken: ReadonlySet<string>): boolean {
  const [whole = ''] = address.split('/');
  if (taken.has(address) || taken.has(whole)) return false;
  return !taken.values().some((other) => other.startsWith(`${address}/`));
}

/** The best of the places that fit: most free for CPU machines, so that none is crowded; the tightest for
 * GPU machines, so that the large ones still find a whole node. */
export function choosePlace(
  offer: Offer,
  places: readonly Place[],
  takenOf: (place: Place) => Taken,
): Place | undefined {
  const candidates = places
    .map((place) => ({ place, taken: takenOf(place) }))
    .filter(({ place, taken }) => fits(offer, place, taken))
    .map(({ place, taken }) => ({ place, rank: rank(offer, place, taken) }));
  return candidates.sort((one, other) => compare(one.rank, other.rank))[0]?.place;
}

/** Smaller is better; the first number that differs decides. */
function rank(offer: Offer, place: Place, taken: Taken): number[] {
  const { cpuVcpus, cpuMemoryGib } = splitNode(place);
  const spread = [taken.vcpus - cpuVcpus, taken.memoryGib - cpuMemoryGib];
  if (offer.pool !== 'gpu') return spread;
  return [freeGpus(offer, place, taken).length, place.gpus.length, ...spread];
}

function compare(one: readonly number[], other: readonly number[]): number {
  for (const [index, value] of one.entries()) {
    const difference = value - (other[index] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}

/** Where a new filesystem must be. Null when there is a choice, which the first machine that uses it makes. */
export function findOnlyHome(places: readonly Place[], region: string): string | null {
  const here = places.filter((place) => place.region === region);
  const [only] = here;
  if (only === undefined || here.some(({ hostId }) => hostId !== only.hostId)) return null;
  return here.length === 1 || only.sharesFilesystems ? only.hostId : null;
}

/** Whether a machine there reaches a filesystem whose volume is on this host and node. */
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
