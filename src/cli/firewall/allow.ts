// millrace firewall allow: adds a rule.

import { Argument, Command, InvalidArgumentError } from 'commander';
import { createClient } from '#cli/client.ts';
import { CliError } from '#cli/output.ts';
import type { FirewallRule } from '#cloud/schema.ts';
import { replaceRules, rules } from './rules.ts';

const maxPort = 65_535;

type Protocol = FirewallRule['protocol'];
interface Options {
  from: string;
  description: string;
  json?: true;
}

export function allowCommand(): Command {
  return new Command('allow')
    .description('Allow inbound traffic')
    .addArgument(new Argument('<protocol>').choices(['tcp', 'udp', 'icmp', 'all']))
    .argument('[ports]', 'A port or a range, such as 8000-8100; icmp has none', parsePorts)
    .option('--from <network>', 'Source, such as 203.0.113.0/24', '0.0.0.0/0')
    .option('--description <text>', 'What it is for', '')
    .option('--json', 'Print JSON')
    .action(allow);
}

async function allow(protocol: Protocol, ports: number[] | undefined, options: Options) {
  if (protocol === 'icmp' && ports !== undefined) throw new CliError('icmp has no ports.', 2);
  if (protocol !== 'icmp' && ports === undefined)
    throw new CliError(
      `Give the ports after ${protocol}, such as 443, 8000-8100 or 1-${maxPort}.`,
      2,
    );
  const client = createClient('any');
  const { from: source_network, description, json } = options;
  const rule = { protocol, source_network, description, ...(ports && { port_range: ports }) };
  await replaceRules(client, [...(await rules.read(client)), rule], json);
}

function parsePorts(text: string): number[] {
  const [, first, last = first] = /^(\d{1,5})(?:-(\d{1,5}))?$/.exec(text) ?? [];
  const range = [Number(first), Number(last)] as const;
  if (!(range[0] >= 1 && range[0] <= range[1] && range[1] <= maxPort))
    throw new InvalidArgumentError(
      `Give a port from 1 to ${maxPort}, or a range such as 8000-8100.`,
    );
  return [...range];
}
