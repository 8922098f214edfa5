// millrace images import: a file, or the two files of a split image, sent through the server to hosts; or a
// name on a server of images, which the hosts then fetch themselves.

import { Command } from 'commander';
import { type Client, createClient, RefusedError } from '#cli/client.ts';
import { createProgressBar } from '#cli/models/progress.ts';
import { CliError } from '#cli/output.ts';
import type { HostImage } from '#cloud/hosts/schema.ts';
import { addHost, chooseHosts, imagePath, postImage } from './hosts.ts';
import { fingerprintOf, openUpload } from './upload.ts';

interface Options {
  alias: string;
  remote?: string;
  host?: string[];
}

const examples = `
Examples:
  millrace images import image.tar.xz --alias ubuntu-24-04
  millrace images import metadata.tar.xz rootfs.squashfs --alias debian-12 --host rack1
  millrace images import --remote images:debian/12/cloud --alias debian-12

Remotes are images, ubuntu, ubuntu-daily, or an https:// address of simple streams.`;

export function importCommand(): Command {
  return new Command('import')
    .description('add an image to hosts, under the name that launches ask for')
    .argument('[file]', 'an image, or the metadata of a split one')
    .argument('[rootfs]', 'the squashfs, tarball or disk of a split one')
    .requiredOption('--alias <name>', 'what launches shall call it, e.g. ubuntu-24-04')
    .option('--remote <remote:image>', 'have the hosts fetch it, e.g. images:debian/12/cloud')
    .option(
      '--host <name>',
      'where to; may be repeated (default: every LXD or Incus host)',
      addHost,
    )
    .addHelpText('after', examples)
    .action(async (file: string | undefined, rootfs: string | undefined, options: Options) => {
      const { alias, remote } = options;
      if ((file === undefined) === (remote === undefined)) {
        throw new CliError('Give either a file or --remote.', 2);
      }
      const client = createClient('session');
      const hosts = await chooseHosts(client, options.host);
      for (const host of hosts) {
        if (remote !== undefined) await postImage(client, host, alias, parseRemote(remote));
        else await send(client, host, alias, [file ?? '', ...(rootfs ? [rootfs] : [])]);
        console.log(`Imported ${alias} to ${host}.`);
      }
    });
}

/** The last colon: an address has one of its own. */
function parseRemote(text: string): { remote: string; image: string } {
  const [, remote = '', image = ''] = /^(.+):([^:]+)$/.exec(text) ?? [];
  if (image !== '' && !image.startsWith('//')) return { remote, image };
  throw new CliError('--remote is <remote>:<image>, e.g. images:debian/12/cloud.', 2);
}

async function send(client: Client, host: string, alias: string, files: string[]): Promise<void> {
  const fingerprint = await fingerprintOf(files);
  try {
    await postImage(client, host, alias, { fingerprint });
    return;
  } catch (error) {
    // It has to be sent then.
    if (!(error instanceof RefusedError && error.status === 404)) throw error;
  }
  const bar = createProgressBar(process.stderr);
  const upload = await openUpload(files, (done, total) => bar.show(done, total, host));
  try {
    await client.postLong<HostImage>(imagePath(host, alias), upload);
  } finally {
    bar.end();
  }
}
