// Instance types: every place divided into sizes, followed by the public catalog, which has capacity only if
// the operator has it emulated. Pure: places in, offers out.

import type { InstanceType } from '#cloud/schema.ts';
import { type Place, splitNode } from './place.ts';
import { type CatalogType, catalogModels, toGpuCents, typeCatalog } from './type-catalog.ts';

export interface Offer {
  readonly type: InstanceType;
  /** Null if the type is listed but nothing here can run it. */
  readonly pool: 'cpu' | 'gpu' | 'emulated' | null;
  /** What an instance of this type really gets. */
  readonly vcpus: number;
  readonly memoryGib: number;
  readonly storageGib: number;
  /** The model of its `type.specs.gpus` GPUs, as the driver names it; null if it has none. */
  readonly gpuModel: string | null;
}

export interface Offers {
  /** All offers, in the order in which the API lists them. */
  readonly all: readonly Offer[];
  find(name: string): Offer | undefined;
}

export interface OfferOptions {
  emulate: boolean;
  /** Maximum number of emulated instances that exist at once. */
  emulatedInstances: number;
  /** Cents per hour by type name; takes precedence over the built-in prices. */
  prices: Readonly<Record<string, number>>;
}

const centsPerVcpu = 5;

export function createOffers(known: readonly Place[], options: OfferOptions): Offers {
  // The size of a node that has never been online is unknown.
  const places = known.filter(({ vcpus }) => vcpus > 0);
  const gpu = gpuOffers(places);
  const cpu = cpuOffers(places);
  const ownNames = new Set([...gpu, ...cpu].map(({ type }) => type.name));
  const catalog = typeCatalog
    .filter(({ name }) => !ownNames.has(name))
    .map((entry) => catalogOffer(entry, places, options));
  const all = [...gpu, ...catalog, ...cpu].map((offer) => withPrice(offer, options.prices));
  const byName = new Map(all.map((offer) => [offer.type.name, offer]));
  return { all, find: (name) => byName.get(name) };
}

interface Resources {
  readonly vcpus: number;
  readonly memoryGib: number;
  readonly storageGib: number;
}

/** A type has one size wherever it is launched: the smallest share that any place offering it would give. */
function smallestOf(all: readonly Resources[]): Resources {
  const least = (member: keyof Resources) => Math.min(...all.map((one) => one[member]));
  return {
    vcpus: least('vcpus'),
    memoryGib: least('memoryGib'),
    storageGib: least('storageGib'),
  };
}

function cpuOffers(places: readonly Place[]): Offer[] {
  const nodes = places.map((place) => ({ place, ...splitNode(place) }));
  const sizes = [...new Set(nodes.flatMap(({ cpuVcpus }) => sizesUpTo(cpuVcpus)))];
  return sizes
    .sort((one, other) => one - other)
    .map((size) => {
      const able = nodes.filter(({ cpuVcpus }) => sizesUpTo(cpuVcpus).includes(size));
      const given = smallestOf(
        able.map(({ place, sharedVcpus, cpuMemoryGib }) => ({
          vcpus: size,
          memoryGib: Math.max(1, Math.floor((cpuMemoryGib * size) / sharedVcpus)),
          storageGib: Math.max(
            1,
            Math.floor((place.storageGib * size) / (place.vcpus * (place.overcommit ?? 1))),
          ),
        })),
      );
      const note = warning(able.map(({ place }) => place));
      const description = `${size}x CPU General (${given.memoryGib} GiB)${note}`;
      const type = toType(`cpu_${size}x_general`, description, { ...given, gpus: 0 });
      type.price_cents_per_hour = size * centsPerVcpu;
      return { type, pool: 'cpu', gpuModel: null, ...given };
    });
}

function gpuOffers(places: readonly Place[]): Offer[] {
  const models = [...new Set(places.flatMap(({ gpus }) => gpus.map(({ model }) => model)))];
  return models.flatMap((model) => {
    const nodes = places
      .map((place) => ({ place, gpus: place.gpus.filter((gpu) => gpu.model === model) }))
      .filter(({ gpus }) => gpus.length > 0);
    const counts = [...new Set(nodes.flatMap(({ gpus }) => countsUpTo(model, gpus.length)))];
    return counts
      .sort((one, other) => other - one)
      .map((count) => {
        const able = nodes.filter(({ gpus }) => gpus.length >= count);
        return gpuOffer(
          model,
          count,
          able[0]?.gpus[0]?.memoryGib ?? 0,
          able.map(({ place }) => place),
        );
      });
  });
}

function gpuOffer(model: string, count: number, memoryGib: number, able: readonly Place[]): Offer {
  const name = `gpu_${count}x_${toSlug(model)}`;
  const listed = typeCatalog.find((entry) => entry.name === name);
  const given = smallestOf(
    able.map((place) => {
      const { gpuVcpus, gpuMemoryGib } = splitNode(place);
      return {
        vcpus: gpuVcpus * count,
        memoryGib: gpuMemoryGib * count,
        storageGib: Math.max(1, Math.floor((place.storageGib * count) / place.gpus.length)),
      };
    }),
  );
  const gpu = listed?.gpu ?? `${shorten(model)} (${memoryGib} GB)`;
  const type = toType(name, `${count}x ${gpu}${warning(able)}`, { ...given, gpus: count });
  type.price_cents_per_hour = listed?.cents ?? count * toGpuCents(model, memoryGib);
  return { type, pool: 'gpu', gpuModel: model, ...given };
}

/** Less disk has no room for what clients install first, such as SkyPilot's runtime. */
const minEmulatedDiskGib = 10;

/**
 * On a place that is smaller than its specs, an emulated instance is reduced to the place's vCPUs
 * and memory. Its disk is a share of the smallest place's, so that as many fit as may exist, and
 * its type says so: clients count on the disk.
 */
function catalogOffer(entry: CatalogType, places: readonly Place[], options: OfferOptions): Offer {
  const { name, gpu, vcpus, memoryGib, gpus, cents } = entry;
  const shares = places.map((place) => Math.floor(place.storageGib / options.emulatedInstances));
  const share = Math.max(minEmulatedDiskGib, Math.min(...shares));
  const storageGib = options.emulate ? Math.min(entry.storageGib, share) : entry.storageGib;
  const count = gpus || vcpus;
  const note = options.emulate ? ', emulated without the hardware' : '';
  const specs = { vcpus, memoryGib, storageGib, gpus };
  const type = toType(name, `${count}x ${gpu}${note}`, specs);
  type.price_cents_per_hour = cents;
  const pool = options.emulate ? 'emulated' : null;
  return { type, pool, vcpus, memoryGib, storageGib, gpuModel: null };
}

function toType(
  name: string,
  description: string,
  specs: { vcpus: number; memoryGib: number; storageGib: number; gpus: number },
): InstanceType {
  return {
    name,
    description,
    gpu_description: specs.gpus === 0 ? 'N/A' : description.replace(/^\d+x /, ''),
    price_cents_per_hour: 0,
    specs: {
      vcpus: specs.vcpus,
      memory_gib: specs.memoryGib,
      storage_gib: specs.storageGib,
      gpus: specs.gpus,
    },
  };
}

function withPrice(offer: Offer, prices: OfferOptions['prices']): Offer {
  const price = prices[offer.type.name];
  if (price === undefined) return offer;
  return { ...offer, type: { ...offer.type, price_cents_per_hour: price } };
}

/** Powers of two below the whole, and the whole. */
function sizesUpTo(whole: number): number[] {
  const sizes: number[] = [];
  for (let size = 1; size < whole; size *= 2) sizes.push(size);
  return [...sizes, whole];
}

/** A program can use only one MIG slice, so an instance gets one. */
const countsUpTo = (model: string, whole: number) => (slice.test(model) ? [1] : sizesUpTo(whole));

const warning = (places: readonly Place[]) =>
  places.every(({ isolated }) => isolated) ? '' : ', not isolated from the host';

/** The suffix of a GPU model that is a MIG slice, e.g. `NVIDIA H100 PCIe MIG 1g.10gb`. */
const slice = / MIG (\S+)$/;

const shorten = (model: string) => model.replace(/^NVIDIA (GeForce )?/, '');

function toSlug(model: string): string {
  const short = shorten(model).replace(slice, '');
  const known = catalogModels.find(([pattern]) => pattern.test(short))?.[1];
  const part = slice.exec(model)?.[1];
  return `${known ?? spell(short)}${part === undefined ? '' : `_mig_${spell(part)}`}`;
}

const spell = (words: string) => words.toLowerCase().replaceAll(/[^a-z0-9]+/g, '_');
