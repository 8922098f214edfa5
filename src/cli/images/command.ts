// millrace images: the images that LXD and Incus hosts boot instances from.

import type { Command } from 'commander';
import { type Collection, listCommand, nounCommand } from '#cli/noun.ts';
import { atOnce } from '#cli/pages.ts';
import type { HostImage } from '#cloud/hosts/schema.ts';
import { buildCommand } from './build.ts';
import { importCommand } from './import.ts';

const images: Collection<HostImage> = {
  plural: 'images',
  needs: 'session',
  read: atOnce('/dashboard/api/images'),
};

export const imagesCommand = (): Command =>
  nounCommand('images', 'List, import and build the images that hosts boot instances from', [
    listCommand(images, {
      description: 'List the images of every host',
      columns: {
        NAME: ({ name }) => name,
        HOST: ({ host }) => host,
        REGION: ({ region }) => region,
        ARCHITECTURE: ({ architecture }) => architecture,
        DESCRIPTION: ({ description }) => description,
      },
    }),
    importCommand(),
    buildCommand(),
  ]);
