// What can be launched: the host cut into sizes, and the public catalog beside it, which has capacity only
// where the operator lets it be emulated. Pure: the driver's report in, the offer out.

import type { DriverReport } from './drivers/driver.ts';
import type { InstanceType } from './schema.ts';
import { type CatalogType, catalogModels, typeCatalog } from './type-catalog.ts';

export interface Offer {
  readonly type: InstanceType;
  /** Null: listed, but nothing here can run it. */
  readonly pool: 'cpu' | 'gpu' | 'emulated' | null;
  /** What a machine of this type is really given. */
  readonly vcpus: number;
  readonly memoryGib: number;
  readonly storageGib: number;
  /** The model to take `type.specs.gpus` GPUs of, in the driver's words; null for none. */
  readonly gpuModel: string | null;
}

export interface Offers {
  /** In the order they are listed. */
  readonly all: readonly Offer[];
  find(name: string): Offer | undefined;
  /** What there is of each pool. */
  readonly totals: {
    readonly vcpus: number;
    readonly memoryGib: number;
    readonly emulated: number;
    readonly gpus: DriverReport['gpus'];
  };
}

export interface OfferOptions {
  emulate: boolean;
  /** How many emulated instances may live at once. */
  emulatedInstances: number;
  /** Cents an hour by type name; wins over what is built in. */
  prices: Readonly<Record<string, number>>;
}

const centsPerVcpu = 5;
const centsPerUnknownGpu = 100;

export function createOffers(report: DriverReport, options: OfferOptions): Offers {
  const split = splitHost(report);
  const own = [...gpuOffers(report, split), ...cpuOffers(report, split)];
  const ownNames = new Set(own.map(({ type }) => type.name));
  const catalog = typeCatalog
    .filter(({ name }) => !ownNames.has(name))
    .map((entry) => catalogOffer(entry, report, options));
  const all = [
    ...own.filter(({ pool }) => pool === 'gpu'),
    ...catalog,
    ...own.filter(({ pool }) => pool === 'cpu'),
  ].map((offer) => withPrice(offer, options.prices));
  const byName = new Map(all.map((offer) => [offer.type.name, offer]));
  return {
    all,
    find: (name) => byName.get(name),
    totals: {
      vcpus: split.cpuVcpus,
      memoryGib: split.cpuMemoryGib,
      emulated: options.emulate ? options.emulatedInstances : 0,
      gpus: report.gpus,
    },
  };
}

/** Each GPU comes with its share of half the host; else a few small CPU machines would strand it. */
function splitHost({ vcpus, memoryGib, gpus }: DriverReport) {
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

type Split = ReturnType<typeof splitHost>;

function cpuOffers(report: DriverReport, { cpuVcpus, cpuMemoryGib }: Split): Offer[] {
  return sizesUpTo(cpuVcpus).map((size) => {
    const memoryGib = Math.max(1, Math.floor((cpuMemoryGib * size) / cpuVcpus));
    const storageGib = Math.max(1, Math.floor((report.storageGib * size) / report.vcpus));
    const description = `${size}x CPU General (${memoryGib} GiB)${warning(report)}`;
    const given = { vcpus: size, memoryGib, storageGib };
    const type = toType(`cpu_${size}x_general`, description, { ...given, gpus: 0 });
    type.price_cents_per_hour = size * centsPerVcpu;
    return { type, pool: 'cpu', gpuModel: null, ...given };
  });
}

function gpuOffers(report: DriverReport, { gpuVcpus, gpuMemoryGib }: Split): Offer[] {
  const models = [...new Set(report.gpus.map(({ model }) => model))];
  return models.flatMap((model) => {
    const gpus = report.gpus.filter((gpu) => gpu.model === model);
    const slug = toSlug(model);
    return sizesUpTo(gpus.length)
      .reverse()
      .map((count): Offer => {
        const name = `gpu_${count}x_${slug}`;
        const listed = typeCatalog.find((entry) => entry.name === name);
        const given = {
          vcpus: gpuVcpus * count,
          memoryGib: gpuMemoryGib * count,
          storageGib: Math.max(1, Math.floor((report.storageGib * count) / report.gpus.length)),
        };
        const gpu = listed?.gpu ?? `${shorten(model)} (${gpus[0]?.memoryGib ?? 0} GB)`;
        const type = toType(name, `${count}x ${gpu}${warning(report)}`, { ...given, gpus: count });
        type.price_cents_per_hour = listed?.cents ?? count * centsPerUnknownGpu;
        return { type, pool: 'gpu', gpuModel: model, ...given };
      });
  });
}

function catalogOffer(entry: CatalogType, report: DriverReport, options: OfferOptions): Offer {
  const { name, gpu, vcpus, memoryGib, storageGib, gpus, cents } = entry;
  const count = gpus || vcpus;
  const note = options.emulate ? ', emulated without the hardware' : '';
  const specs = { vcpus, memoryGib, storageGib, gpus };
  const type = toType(name, `${count}x ${gpu}${note}`, specs);
  type.price_cents_per_hour = cents;
  return {
    type,
    pool: options.emulate ? 'emulated' : null,
    vcpus: Math.min(vcpus, report.vcpus),
    memoryGib: Math.min(memoryGib, report.memoryGib),
    storageGib: Math.min(storageGib, report.storageGib),
    gpuModel: null,
  };
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

/** 1, 2, 4 ... and the whole. */
function sizesUpTo(whole: number): number[] {
  const sizes: number[] = [];
  for (let size = 1; size < whole; size *= 2) sizes.push(size);
  return [...sizes, whole];
}

const warning = ({ isolated }: DriverReport) => (isolated ? '' : ', not isolated from the host');

const shorten = (model: string) => model.replace(/^NVIDIA (GeForce )?/, '');

function toSlug(model: string): string {
  const short = shorten(model);
  const known = catalogModels.find(([pattern]) => pattern.test(short))?.[1];
  return known ?? short.toLowerCase().replaceAll(/[^a-z0-9]+/g, '_');
}
