// millrace hosts add.

import { Command } from 'commander';
import { createClient } from '#cli/client.ts';
import { CliError, printJson } from '#cli/output.ts';
import type { HostView } from '#cloud/hosts/schema.ts';
import { printChecks } from './check.ts';

interface Options {
  region: string;
  token?: string;
  url?: string;
  fingerprint?: string;
  target?: string;
  pool?: string;
  network?: string;
  project?: string;
  filesystemsPath?: string;
  json?: true;
}

export function addCommand(): Command {
  return new Command('add')
    .description('add an LXD or Incus host, or a cluster of them')
    .argument('<name>', 'what it shall be called')
    .requiredOption('--region <region>', 'where it is, e.g. us-west-1')
    .option('--token <token>', 'from `incus config trust add` or `lxc config trust add` there')
    .option('--url <url>', 'https://host:8443, or unix:/path of a socket on the server')
    .option('--fingerprint <sha256>', "of the host's certificate, when there is no token")
    .option('--target <target>', "one member of the cluster, or a group as '@name'")
    .option('--pool <pool>', 'its storage pool')
    .option('--network <network>', 'its network for machines')
    .option('--project <project>', 'its project')
    .option('--filesystems-path <path>', 'a directory that all hosts of the region share')
    .option('--json', 'print JSON')
    .action(async (name: string, { json, filesystemsPath, ...options }: Options) => {
      if (options.token === undefined && options.url === undefined) {
        throw new CliError('Give --token, or --url of a host that trusts the server already.', 2);
      }
      const client = createClient('session');
      const host = await client.post<HostView>('/dashboard/api/hosts', {
        name,
        ...options,
        ...(filesystemsPath === undefined ? {} : { filesystems_path: filesystemsPath }),
      });
      if (json) return printJson(host);
      console.log(`Added ${host.name} to ${host.region}.`);
      // It was added whatever is wrong with it: what that is should be said now, not at the first launch.
      await printChecks(client, name);
    });
}
