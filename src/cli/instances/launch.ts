// millrace instances launch: prints the new id, alone on stdout so that scripts can capture it.

import { readFileSync } from 'node:fs';
import { Command } from 'commander';
import { type Client, createClient } from '#cli/client.ts';
import { filesystems } from '#cli/filesystems/command.ts';
import { findOnly } from '#cli/find.ts';
import { getItem } from '#cli/noun.ts';
import { CliError, printJson } from '#cli/output.ts';
import { nameProgram } from '#cli/program-name.ts';
import { sshKeys } from '#cli/ssh-keys/command.ts';
import type { InstanceTypes, Ruleset, SshKey } from '#cloud/schema.ts';
import { toReason } from '#lib/start-error.ts';
import { waitUntilActive } from './wait.ts';

interface Options {
  name?: string;
  region?: string;
  sshKey?: string;
  hostname?: string;
  image?: string;
  filesystem?: string[];
  ruleset?: string[];
  tag?: string[];
  userData?: string;
  wait?: true;
  json?: true;
}

export function launchCommand(): Command {
  return new Command('launch')
    .description('Launch an instance')
    .argument('<type>', 'Instance type, from `millrace instances types`, e.g. cpu_1x_general')
    .option('--name <name>', 'Name for the instance')
    .option('--region <region>', 'Region (default: the first one with capacity)')
    .option(
      '--ssh-key <key>',
      'SSH key by name or id, from `millrace ssh-keys list` (default: the newest)',
    )
    .option('--hostname <name>', 'Hostname inside the instance')
    .option('--image <family>', 'Image family, e.g. ubuntu-24-04, or the id of an image')
    .option('--filesystem <name...>', 'Filesystems by name or id, to mount at /lambda/nfs/<name>')
    .option('--ruleset <id...>', 'Firewall rulesets by name or id that apply to it')
    .option('--tag <key=value...>', 'Tags, e.g. team=vision')
    .option(
      '--user-data <file>',
      'File with cloud-init user data, run at the first boot; - reads stdin',
    )
    .option('--wait', 'Wait until the instance is active')
    .option('--json', 'Print JSON')
    .action(launch);
}

async function launch(type: string, options: Options): Promise<void> {
  const client = createClient('any');
  const userData = options.userData === undefined ? undefined : read(options.userData);
  const { data } = await client.post<{ data: { instance_ids: string[] } }>(
    '/api/v1/instance-operations/launch',
    {
      instance_type_name: type,
      region_name: options.region ?? (await findRegion(client, type)),
      ssh_key_names: [(await findKey(client, options.sshKey)).name],
      name: options.name,
      hostname: options.hostname,
      image: options.image === undefined ? undefined : toImage(options.image),
      file_system_names:
        options.filesystem && (await toFilesystemNames(client, options.filesystem)),
      firewall_rulesets: options.ruleset && (await toRulesets(client, options.ruleset)),
      tags: options.tag?.map(toTag),
      user_data: userData,
    },
  );
  const id = data.instance_ids[0] as string;
  const instance = options.wait ? await waitUntilActive(client, id) : undefined;
  if (options.json) return printJson(instance ?? { id });
  console.log(id);
  if (instance?.ip !== undefined) {
    console.error(nameProgram(`Connect with \`millrace instances ssh ${options.name ?? id}\`.`));
  }
}

const toImage = (image: string) =>
  /^[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}$/i.test(image) ? { id: image } : { family: image };

function toTag(text: string) {
  const at = text.indexOf('=');
  return at === -1
    ? { key: text, value: '' }
    : { key: text.slice(0, at), value: text.slice(at + 1) };
}

async function findRegion(client: Client, type: string): Promise<string> {
  const { data } = await client.get<{ data: InstanceTypes }>('/api/v1/instance-types');
  const offered = data[type];
  if (offered === undefined) {
    throw new CliError(`There is no instance type ${type}. See \`millrace instances types\`.`);
  }
  const region = offered.regions_with_capacity_available[0]?.name;
  if (region === undefined) {
    throw new CliError(`No region has capacity for ${type}. See \`millrace instances types\`.`);
  }
  return region;
}

/** Without a wish, it is the newest. */
async function findKey(client: Client, wanted: string | undefined): Promise<SshKey> {
  if (wanted !== undefined) return getItem(sshKeys, client, wanted);
  const newest = (await sshKeys.read(client)).at(-1);
  if (newest === undefined) {
    throw new CliError(
      'The account has no SSH key. Add one with `millrace ssh-keys add` or `millrace ssh-keys generate`.',
    );
  }
  return newest;
}

async function toFilesystemNames(client: Client, wanted: readonly string[]): Promise<string[]> {
  const all = await filesystems.read(client);
  return wanted.map((one) => findOnly(all, one, filesystems).name);
}

async function toRulesets(client: Client, wanted: readonly string[]): Promise<{ id: string }[]> {
  const { data } = await client.get<{ data: Ruleset[] }>('/api/v1/firewall-rulesets');
  const command = 'GET /api/v1/firewall-rulesets';
  const kind = { noun: 'ruleset', command, namesOf: ({ name }: Ruleset) => [name] };
  return wanted.map((one) => ({ id: findOnly(data, one, kind).id }));
}

function read(file: string): string {
  try {
    return readFileSync(file === '-' ? 0 : file, 'utf8');
  } catch (error) {
    throw new CliError(`Can't read ${file}: ${toReason(error)}.`);
  }
}
