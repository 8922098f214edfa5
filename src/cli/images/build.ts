// millrace images build: builds the small image from programs installed on the server, and imports it.

import { Command } from 'commander';
import { createClient } from '#cli/client.ts';
import { printJson } from '#cli/output.ts';
import type { HostImage } from '#cloud/hosts/schema.ts';
import { addHost, chooseHosts, postImage } from './hosts.ts';

export function buildCommand(): Command {
  return new Command('build')
    .description('Build a small test image from programs installed on the server, and import it')
    .option('--alias <name>', 'Image name for launches', 'millrace-small')
    .option(
      '--host <name>',
      'Target host; may be repeated (default: every LXD and Incus host)',
      addHost,
    )
    .option('--json', 'Print JSON')
    .action(async ({ alias, host, json }: { alias: string; host?: string[]; json?: true }) => {
      const client = createClient('session');
      const images: HostImage[] = [];
      for (const one of await chooseHosts(client, host)) {
        const image: HostImage = await postImage(client, one, alias, { recipe: 'small' });
        images.push(image);
        if (!json) console.log(`Built ${image.name} and imported it to ${one}.`);
      }
      if (json) printJson(images);
    });
}
