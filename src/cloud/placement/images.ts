// Images: what hosts report. On a server's own host it is the host's system, also under the family names that
// clients ask for; their descriptions say so. There is one entry per image and region, with the same id in
// each region: one client reads its list of regions from here.

import { createHash } from 'node:crypto';
import { findRegion, regions } from '#cloud/regions.ts';
import type { Image, ImageChoice } from '#cloud/schema.ts';
import { toWireTime } from '#cloud/wire.ts';
import type { Place } from './place.ts';

export interface Images {
  list(): Image[];
  /** Undefined if the region has no such image. A null choice finds the region's default. */
  find(choice: ImageChoice | null, region: string): Image | undefined;
  /** The image's id, and its name for the place's driver. Undefined if the place doesn't have it. A null
   * choice finds the place's default. */
  on(place: Place, choice: ImageChoice | null): { id: string; name: string } | undefined;
}

const families = [
  ['lambda-stack-24-04', 'Lambda Stack 24.04', '24.4.2-1459'],
  ['lambda-stack-22-04', 'Lambda Stack 22.04', '22.4.5-1459'],
  ['gpu-base-24-04', 'GPU Base 24.04', '24.4.2-1459'],
  ['gpu-base-22-04', 'GPU Base 22.04', '22.4.5-1459'],
  ['ubuntu-24-04', 'Ubuntu 24.04.2 LTS', '24.4.2-20250626'],
  ['ubuntu-22-04', 'Ubuntu 22.04.5 LTS', '22.4.5-20250702'],
  ['lambda-stack-legacy-22-04', 'Lambda Stack Legacy 22.04', '22.4.5-1459'],
] as const;

/** Launches that name no image get this family. */
const defaultFamily = families[0][0];

const published = Date.parse('2025-11-13T19:45:33.104Z');

export interface ImageOptions {
  /** The operating system of the server, e.g. `Debian GNU/Linux 12 (bookworm)`. */
  system: string;
  architecture: 'x86_64' | 'arm64';
}

export function createImages(
  { system, architecture }: ImageOptions,
  places: () => readonly Place[],
): Images {
  const own = [
    ...families.map(([family, name]) =>
      toEntry(family, `Stands for ${name}: machines run the host's ${system}.`, architecture),
    ),
    toEntry('host', `The system of the host: ${system}.`, architecture),
  ];

  /** A region without hosts lists the images of a server's own host. */
  function inRegion(region: string): Entry[] {
    const here = places().filter((place) => place.region === region);
    const offersOwn = here.length === 0 || here.some(({ images }) => images === null);
    const reported = here.flatMap(({ images }) => images ?? []);
    const entries = [
      ...(offersOwn ? own : []),
      ...reported.map((image) => toEntry(image.name, image.description, image.architecture)),
    ];
    return [...new Map(entries.reverse().map((entry) => [entry.family, entry])).values()].reverse();
  }

  function find(choice: ImageChoice | null, regionName: string): Image | undefined {
    const region = findRegion(regionName);
    const entries = inRegion(regionName);
    const entry =
      choice === null
        ? (entries.find(({ family }) => family === defaultFamily) ?? entries[0])
        : entries.find(({ family }) => isChosen(choice, family));
    return entry && region && { ...entry, region };
  }

  return {
    list: () =>
      regions.flatMap((region) => inRegion(region.name).map((entry) => ({ ...entry, region }))),
    find,
    on({ images, defaultImage }, choice) {
      const names = images?.map(({ name }) => name) ?? own.map(({ family }) => family);
      const family =
        choice === null
          ? [defaultImage, defaultFamily, names[0]].find((name) => names.includes(name ?? ''))
          : names.find((name) => isChosen(choice, name));
      if (family === undefined || family === null) return undefined;
      return { id: toId(family), name: images === null ? 'host' : family };
    },
  };
}

type Entry = Omit<Image, 'region'>;

const isChosen = (choice: ImageChoice, family: string) =>
  'id' in choice ? toId(family) === choice.id.toLowerCase() : family === choice.family;

const describe = (family: string) =>
  families.find(([known]) => known === family) ?? [family, '', '1'];

const toId = (family: string) => toUuid(`${family} ${describe(family)[2]}`);

function toEntry(family: string, description: string, architecture: Image['architecture']): Entry {
  const [, name, version] = describe(family);
  const time = toWireTime(published);
  return {
    id: toId(family),
    created_time: time,
    updated_time: time,
    name: name || (family === 'host' ? 'Host' : family),
    description,
    family,
    version,
    architecture,
  };
}

/** Derives the id from the text: it is the same at every start and on every host. */
function toUuid(text: string): string {
  const hex = createHash('sha256').update(text).digest('hex').slice(0, 32);
  return hex.replace(/^(.{8})(.{4}).(.{3}).(.{3})(.{12})$/, '$1-$2-4$3-8$4-$5');
}
