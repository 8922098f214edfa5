// A launch as commands to paste: the CLI, curl and Terraform. Each launches exactly what the page would.

import type { Launch } from '#cloud/schema.ts';
import { programName } from '../browser/program-name.ts';
import { toLaunchCode } from '../code-samples/launch.ts';
import { fromTag } from './tags.ts';

export const formats = ['CLI', 'curl', 'Terraform'] as const;
export type LaunchFormat = (typeof formats)[number];

export function toLaunchCommands(address: string, launch: Launch): Record<LaunchFormat, string> {
  return {
    CLI: toCli(launch),
    curl: toLaunchCode(address, launch).curl,
    Terraform: toTerraform(address, launch),
  };
}

/** For a POSIX shell. A word of plain characters needs no quotes. */
const quote = (text: string) =>
  /^[\w.,:/=@+-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;

function toCli(launch: Launch): string {
  const image = launch.image && ('id' in launch.image ? launch.image.id : launch.image.family);
  const options = [
    ['--region', launch.region_name],
    ['--ssh-key', launch.ssh_key_names[0]],
    ['--image', image],
    ['--name', launch.name],
    ...(launch.file_system_names ?? []).map((name) => ['--filesystem', name]),
    ...(launch.firewall_rulesets ?? []).map(({ id }) => ['--ruleset', id]),
    ...(launch.tags ?? []).map((tag) => ['--tag', fromTag(tag)]),
    ['--user-data', launch.user_data ? '-' : undefined],
  ];
  const lines = options
    .filter(([, value]) => value !== undefined && value !== null)
    .map(([flag, value]) => `${flag} ${quote(value as string)}`);
  const launched = `${programName()} instances launch ${launch.instance_type_name}`;
  const command = [launched, ...lines].join(' \\\n  ');
  if (!launch.user_data) return command;
  const end = findDelimiter(launch.user_data);
  return `${command} <<'${end}'\n${launch.user_data}${end}`;
}

/** A line that ends the user data must not occur in it. */
function findDelimiter(text: string): string {
  const lines = new Set(text.split('\n'));
  let delimiter = 'EOF';
  while (lines.has(delimiter)) delimiter += '_';
  return delimiter;
}

const argumentNames = [
  'name',
  'region_name',
  'instance_type_name',
  'ssh_key_names',
  'file_system_names',
];

/** For the provider of Lambda's cloud. It has no arguments for some members, which the comment says. */
function toTerraform(address: string, launch: Launch): string {
  // Without an empty list, the provider wants to change the machine after each apply, and then fails: it can't.
  const members = Object.entries({ ...launch, file_system_names: launch.file_system_names ?? [] });
  const given = members
    .filter(([name]) => argumentNames.includes(name))
    .map(([name, value]) => `  ${name} = ${toHcl(value)}`);
  const lacking = members.map(([name]) => name).filter((name) => !argumentNames.includes(name));
  return [
    'terraform {',
    '  required_providers {',
    '    lambdalabs = {',
    '      source  = "elct9620/lambdalabs"',
    // base_url exists since 0.5.0. Versions 6.0.1 and 6.0.2, which were released by mistake, are older than 0.7.0.
    '      version = "~> 0.8"',
    '    }',
    '  }',
    '}',
    'variable "millrace_api_key" {',
    '  sensitive = true',
    '}',
    'provider "lambdalabs" {',
    `  base_url = ${toHcl(`${address}/api/v1`)}`,
    '  api_key  = var.millrace_api_key',
    '}',
    'resource "lambdalabs_instance" "machine" {',
    ...given,
    '}',
    ...(lacking.length === 0 ? [] : [`# This provider can't set: ${lacking.join(', ')}.`]),
  ].join('\n');
}

/** JSON is HCL, except that ${ and %{ begin templates. */
const toHcl = (value: unknown) =>
  JSON.stringify(value).replaceAll(/[$%](?=\{)/g, (sign) => sign + sign);
