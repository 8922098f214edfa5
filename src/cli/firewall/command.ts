// millrace firewall: the inbound rules of all machines of the account.

import { Argument, Command, InvalidArgumentError } from 'commander';
import type { Client } from '#cli/client.ts';
import { createClient } from '#cli/client.ts';
import { CliError, printJson, printTable } from '#cli/output.ts';
import { confirm } from '#cli/prompts.ts';

interface Rule {
  protocol: string;
  port_range?: number[];
  source_network: string;
  description: string;
}

const path = '/api/v1/firewall-rules';
const read = async (client: Client) => (await client.get<{ data: Rule[] }>(path)).data;

export function firewallCommand(): Command {
  const list = new Command('list')
    .description('List the rules by their number')
    .option('--json', 'Print JSON')
    .action(async ({ json }: { json?: true }) => {
      const rules = await read(createClient('any'));
      if (json) return printJson(rules);
      printRules(rules);
    });
  const allow = new Command('allow')
    .description('Allow inbound traffic')
    .addArgument(new Argument('<protocol>').choices(['tcp', 'udp', 'icmp', 'all']))
    .argument('[ports]', 'A port or a range, such as 8000-8100', parsePorts)
    .option('--from <network>', 'Source, such as 203.0.113.0/24', '0.0.0.0/0')
    .option('--description <text>', 'What it is for', '')
    .action(
      async (
        protocol: string,
        ports: number[] | undefined,
        { from, description }: { from: string; description: string },
      ) => {
        const client = createClient('any');
        const rule = { protocol, source_network: from, description };
        const rules = await read(client);
        const data = [...rules, { ...rule, ...(ports && { port_range: ports }) }];
        printRules((await client.put<{ data: Rule[] }>(path, { data })).data);
      },
    );
  const remove = new Command('remove')
    .description('Remove a rule')
    .argument('<number>', 'Number, from `millrace firewall list`', Number)
    .option('--yes', 'Do not ask for confirmation')
    .action(async (number: number, { yes }: { yes?: true }) => {
      const client = createClient('any');
      const rules = await read(client);
      const rule = rules[number - 1];
      if (rule === undefined)
        throw new CliError('There is no rule of this number. See `millrace firewall list`.');
      await confirm(`Remove the rule for ${describe(rule)}?`, yes);
      const data = rules.filter((one) => one !== rule);
      printRules((await client.put<{ data: Rule[] }>(path, { data })).data);
    });
  return new Command('firewall')
    .description('Show and change which traffic reaches machines')
    .addCommand(list)
    .addCommand(allow)
    .addCommand(remove);
}

const describe = ({ protocol, port_range: ports, source_network: source }: Rule) =>
  `${protocol} ${ports?.join('-') ?? ''} from ${source}`;

function printRules(rules: readonly Rule[]): void {
  printTable(
    ['NUMBER', 'PROTOCOL', 'PORTS', 'FROM', 'DESCRIPTION'],
    rules.map(({ protocol, port_range: ports, source_network: source, description }, index) => [
      String(index + 1),
      protocol,
      ports === undefined ? '-' : [...new Set(ports)].join('-'),
      source,
      description,
    ]),
  );
}

function parsePorts(text: string): number[] {
  const [, first, last = first] = /^(\d{1,5})(?:-(\d{1,5}))?$/.exec(text) ?? [];
  if (first === undefined)
    throw new InvalidArgumentError('Give a port, or a range such as 8000-8100.');
  return [Number(first), Number(last)];
}
