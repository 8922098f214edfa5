// Images: the host's own system, and the families clients ask for by name, which stand for it and say so.
// One row per image and region with the same id in each: one client reads its list of regions from here.

import { createHash } from 'node:crypto';
import { type RegionInfo, regions } from './regions.ts';
import type { Image, ImageChoice } from './schema.ts';
import { toWireTime } from './wire-time.ts';

export interface Images {
  list(): Image[];
  /** Undefined when there is no such image in the region. */
  find(choice: ImageChoice | null, region: string): Image | undefined;
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

/** Launches that name no image get the latest Lambda Stack. */
const defaultFamily = families[0][0];

const published = Date.parse('2025-11-13T19:45:33.104Z');

/** `system` is the host's own name for itself, e.g. `Debian GNU/Linux 12 (bookworm)`. */
export function createImages(system: string, architecture: 'x86_64' | 'arm64'): Images {
  const host = toImage('host', 'Host', '1', `The system of the host: ${system}.`);
  const named = families.map(([family, name, version]) =>
    toImage(family, name, version, `Stands for ${name}: machines run the host's ${system}.`),
  );
  const all = [...named, host];

  function toImage(family: string, name: string, version: string, description: string) {
    const time = toWireTime(published);
    const id = toUuid(`${family} ${version}`);
    return { id, created_time: time, updated_time: time, name, description, family, version };
  }
  const inRegion = (image: (typeof all)[number], region: RegionInfo): Image => ({
    ...image,
    architecture,
    region,
  });

  return {
    list: () => regions.flatMap((region) => all.map((image) => inRegion(image, region))),
    find(choice, regionName) {
      const region = regions.find(({ name }) => name === regionName);
      const wanted = choice ?? { family: defaultFamily };
      const image = all.find(({ id, family }) =>
        'id' in wanted ? id === wanted.id.toLowerCase() : family === wanted.family,
      );
      return image && region && inRegion(image, region);
    },
  };
}

/** The same at every start, on every host. */
function toUuid(text: string): string {
  const hex = createHash('sha256').update(text).digest('hex').slice(0, 32);
  return hex.replace(/^(.{8})(.{4}).(.{3}).(.{3})(.{12})$/, '$1-$2-4$3-8$4-$5');
}
