// millrace images build: builds the small image from programs installed on the server, and imports it.

import { Command } from 'commander';
import { createClient } from '#cli/client.ts';
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
    .action(async ({ alias, host }: { alias: string; host?: string[] }) => {
      const client = createClient('session');
      for (const one of await chooseHosts(client, host)) {
        const image: HostImage = await postImage(client, one, alias, { recipe: 'small' });
        console.log(`Built ${image.name} and imported it to ${one}.`);
      }
    });
}
