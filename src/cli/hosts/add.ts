// millrace hosts add.

import { Command } from 'commander';
import { createClient } from '#cli/client.ts';
import { CliError, printJson, printText } from '#cli/output.ts';
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
  ovnUplink?: string;
  filesystemsPath?: string;
  json?: true;
}

export function addCommand(): Command {
  return new Command('add')
    .description('Add an LXD or Incus host, or a cluster')
    .argument('<name>', 'Name for the host')
    .requiredOption('--region <region>', 'Region of the host, e.g. us-west-1')
    .option(
      '--token <token>',
      'Trust token, from `incus config trust add` or `lxc config trust add` on the host',
    )
    .option('--url <url>', 'Address: https://host:8443, or unix:/path of a socket on the server')
    .option(
      '--fingerprint <sha256>',
      'SHA-256 fingerprint of its certificate, if there is no token',
    )
    .option('--target <target>', 'Cluster member, or a cluster group as @name')
    .option('--pool <pool>', 'Storage pool')
    .option('--network <network>', 'Network for instances')
    .option(
      '--ovn-uplink <network>',
      'Physical network on which each account gets a private network across cluster members',
    )
    .option('--project <project>', 'Project')
    .option('--filesystems-path <path>', 'Directory that all hosts of the region share')
    .option('--json', 'Print JSON')
    .action(async (name: string, { json, filesystemsPath, ovnUplink, ...options }: Options) => {
      if (options.token === undefined && options.url === undefined) {
        throw new CliError(
          'Give --token, or the --url of a host that already trusts the server.',
          2,
        );
      }
      const client = createClient('session');
      const host = await client.post<HostView>('/dashboard/api/hosts', {
        name,
        ...options,
        ...(filesystemsPath === undefined ? {} : { filesystems_path: filesystemsPath }),
        ...(ovnUplink === undefined ? {} : { ovn_uplink: ovnUplink }),
      });
      if (json) return printJson(host);
      printText(`Added host ${host.name} to ${host.region}.`);
      // The host is added even if a check fails. Report it now rather than at the first launch.
      await printChecks(client, name);
    });
}
