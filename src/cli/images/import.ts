// millrace images import: uploads an image file, or the two files of a split image, through the server to
// hosts; or makes the hosts download an image from a remote themselves.

import { Command } from 'commander';
import { type Client, createClient, RefusedError } from '#cli/client.ts';
import { CliError, printJson } from '#cli/output.ts';
import { startByteProgress } from '#cli/progress.ts';
import type { HostImage } from '#cloud/hosts/schema.ts';
import { addHost, chooseHosts, imagePath, postImage } from './hosts.ts';
import { fingerprintOf, openUpload } from './upload.ts';

interface Options {
  alias: string;
  remote?: string;
  host?: string[];
  json?: true;
}

const examples = `
Examples:
  millrace images import image.tar.xz --alias ubuntu-24-04
  millrace images import metadata.tar.xz rootfs.squashfs --alias debian-12 --host rack1
  millrace images import --remote images:debian/12/cloud --alias debian-12

A remote is images, ubuntu, ubuntu-daily, or the https:// URL of a simple streams server.`;

export function importCommand(): Command {
  return new Command('import')
    .description('Import an image to hosts under the name that launches use')
    .argument('[file]', 'Image file, or the metadata file of a split image')
    .argument('[rootfs]', 'Squashfs, tarball or disk file of a split image')
    .requiredOption('--alias <name>', 'Image name for launches, e.g. ubuntu-24-04')
    .option('--remote <remote:image>', 'Make the hosts download it, e.g. images:debian/12/cloud')
    .option(
      '--host <name>',
      'Target host; may be repeated (default: every LXD and Incus host)',
      addHost,
    )
    .option('--json', 'Print JSON')
    .addHelpText('after', examples)
    .action(async (file: string | undefined, rootfs: string | undefined, options: Options) => {
      const { alias, remote, json } = options;
      if ((file === undefined) === (remote === undefined)) {
        throw new CliError('Give either an image file or --remote.', 2);
      }
      const client = createClient('session');
      const hosts = await chooseHosts(client, options.host);
      for (const host of hosts) {
        if (remote !== undefined) await postImage(client, host, alias, parseRemote(remote));
        else await upload(client, host, alias, [file ?? '', ...(rootfs ? [rootfs] : [])]);
        if (!json) console.log(`Imported ${alias} to ${host}.`);
      }
      if (json) printJson(hosts.map((host) => ({ name: alias, host })));
    });
}

/** Splits at the last colon: a URL contains one itself. */
function parseRemote(text: string): { remote: string; image: string } {
  const [, remote = '', image = ''] = /^(.+):([^:]+)$/.exec(text) ?? [];
  if (image !== '' && !image.startsWith('//')) return { remote, image };
  throw new CliError('--remote must be <remote>:<image>, e.g. images:debian/12/cloud.', 2);
}

async function upload(client: Client, host: string, alias: string, files: string[]): Promise<void> {
  const fingerprint = await fingerprintOf(files);
  try {
    await postImage(client, host, alias, { fingerprint });
    return;
  } catch (error) {
    // 404: the host does not have this image yet, so upload it.
    if (!(error instanceof RefusedError && error.status === 404)) throw error;
  }
  const body = await openUpload(files, (done) => progress.show(done, host));
  const progress = await startByteProgress(body.bytes, {
    onInterrupt: `The upload of ${alias} to ${host} was interrupted.`,
  });
  try {
    await client.postLong<HostImage>(imagePath(host, alias), body);
  } finally {
    progress.end();
  }
}
