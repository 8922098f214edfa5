// millrace instances launch: prints the new id, alone on stdout so that scripts can take it.

import { readFileSync } from 'node:fs';
import { Command } from 'commander';
import { type Client, createClient } from '#cli/client.ts';
import { CliError, printJson } from '#cli/output.ts';
import type { InstanceTypes, SshKey } from '#cloud/schema.ts';
import { waitFor } from './wait.ts';

interface Options {
  name?: string;
  region?: string;
  sshKey?: string;
  hostname?: string;
  image?: string;
  filesystem?: string[];
  userData?: string;
  wait?: true;
  json?: true;
}

export function launchCommand(): Command {
  return new Command('launch')
    .description('launch a machine')
    .argument('<type>', 'from `millrace instances types`, e.g. cpu_1x_general')
    .option('--name <name>')
    .option('--region <region>', 'the first with capacity by default')
    .option('--ssh-key <name>', 'from `millrace ssh-keys list`; the newest by default')
    .option('--hostname <name>')
    .option('--image <family>', 'e.g. ubuntu-24-04')
    .option('--filesystem <name...>', 'filesystems to mount at /lambda/nfs/<name>')
    .option('--user-data <file>', 'cloud-init user data, run at the first boot')
    .option('--wait', 'until it is active, showing progress')
    .option('--json', 'print JSON')
    .action(async (type: string, options: Options) => {
      const client = createClient('any');
      const userData = options.userData === undefined ? undefined : read(options.userData);
      const { data } = await client.post<{ data: { instance_ids: string[] } }>(
        '/api/v1/instance-operations/launch',
        {
          instance_type_name: type,
          region_name: options.region ?? (await findRegion(client, type)),
          ssh_key_names: [options.sshKey ?? (await findKey(client))],
          name: options.name,
          hostname: options.hostname,
          image: options.image === undefined ? undefined : { family: options.image },
          file_system_names: options.filesystem,
          user_data: userData,
        },
      );
      const id = data.instance_ids[0] as string;
      const instance = options.wait ? await waitFor(client, id) : undefined;
      if (options.json) return printJson(instance ?? { id });
      console.log(id);
      if (instance?.ip !== undefined) {
        console.error(`Enter it with \`millrace instances ssh ${options.name ?? id}\`.`);
      }
    });
}

async function findRegion(client: Client, type: string): Promise<string> {
  const { data } = await client.get<{ data: InstanceTypes }>('/api/v1/instance-types');
  const offered = data[type];
  if (offered === undefined) {
    throw new CliError(`There is no type ${type}. See \`millrace instances types\`.`);
  }
  const region = offered.regions_with_capacity_available[0]?.name;
  if (region === undefined) {
    throw new CliError(`No region has capacity for ${type}. See \`millrace instances types\`.`);
  }
  return region;
}

async function findKey(client: Client): Promise<string> {
  const { data } = await client.get<{ data: SshKey[] }>('/api/v1/ssh-keys');
  const newest = data.at(-1);
  if (newest === undefined) {
    throw new CliError('The account has no SSH key. Add one with `millrace ssh-keys add`.');
  }
  return newest.name;
}

function read(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    throw new CliError(`${file} can't be read.`);
  }
}
