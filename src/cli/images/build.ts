// millrace images build: the small image, made by the server from the programs of its own computer.

import { Command } from 'commander';
import { createClient } from '#cli/client.ts';
import type { HostImage } from '#cloud/hosts/schema.ts';
import { addHost, chooseHosts, postImage } from './hosts.ts';

export function buildCommand(): Command {
  return new Command('build')
    .description(
      'make a small image for trying out, from the programs of the server, and import it',
    )
    .option('--alias <name>', 'what launches shall call it', 'millrace-small')
    .option(
      '--host <name>',
      'where to; may be repeated (default: every LXD or Incus host)',
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
