// Chooses a place for an instance. An instance fits on a place or it doesn't, whatever the sum over all
// places may be. CPU instances are spread, GPU instances are packed. Pure: no rows, no drivers.

import type { Offer } from './instance-types.ts';
import { type Place, splitNode } from './place.ts';

/** What instances that are not terminated use of one place. */
export interface Allocated {
  readonly vcpus: number;
  readonly memoryGib: number;
  /** Addresses of GPUs. */
  readonly gpus: ReadonlySet<string>;
}

/** Emulated instances fit everywhere: their limit is one for all places together. */
export function fits(offer: Offer, place: Place, allocated: Allocated): boolean {
  if (!place.accepting) return false;
  switch (offer.pool) {
    case 'cpu': {
      const { cpuVcpus, sharedVcpus, cpuMemoryGib } = splitNode(place);
      return (
        offer.vcpus <= cpuVcpus &&
        allocated.vcpus + offer.vcpus <= sharedVcpus &&
        allocated.memoryGib + offer.memoryGib <= cpuMemoryGib
      );
    }
    case 'gpu':
      return freeGpus(offer, place, allocated).length >= offer.type.specs.gpus;
    default:
      return offer.pool === 'emulated';
  }
}

export function freeGpus({ gpuModel }: Offer, place: Place, { gpus }: Allocated): string[] {
  return place.gpus
    .filter(({ model, address }) => model === gpuModel && isFree(address, gpus))
    .map(({ address }) => address);
}

/** The address of a slice begins with its GPU's. A GPU with an allocated slice is not free as a whole, and
 * no slice of an allocated GPU is free. */
export function isFree(address: string, allocated: ReadonlySet<string>): boolean {
  const [whole = ''] = address.split('/');
  if (allocated.has(address) || allocated.has(whole)) return false;
  return !allocated.values().some((other) => other.startsWith(`${address}/`));
}

/** The best place that fits: for CPU instances the one with the most free, so that none is crowded; for GPU
 * instances the tightest, so that large ones still find a whole node. */
export function choosePlace(
  offer: Offer,
  places: readonly Place[],
  allocatedOn: (place: Place) => Allocated,
): Place | undefined {
  const candidates = places
    .map((place) => ({ place, allocated: allocatedOn(place) }))
    .filter(({ place, allocated }) => fits(offer, place, allocated))
    .map(({ place, allocated }) => ({ place, rank: rank(offer, place, allocated) }));
  return candidates.sort((one, other) => compare(one.rank, other.rank))[0]?.place;
}

/** Smaller is better; the first number that differs decides. */
function rank(offer: Offer, place: Place, allocated: Allocated): number[] {
  const { sharedVcpus, cpuMemoryGib } = splitNode(place);
  const spread = [allocated.vcpus - sharedVcpus, allocated.memoryGib - cpuMemoryGib];
  if (offer.pool !== 'gpu') return spread;
  return [freeGpus(offer, place, allocated).length, place.gpus.length, ...spread];
}

function compare(one: readonly number[], other: readonly number[]): number {
  for (const [index, value] of one.entries()) {
    const difference = value - (other[index] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}
