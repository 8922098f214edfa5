// Reads, replaces and prints the account's firewall rules. The API replaces all of them at once.

import type { Client } from '#cli/client.ts';
import type { Collection } from '#cli/noun.ts';
import { type Columns, report, toTable } from '#cli/output.ts';
import { atOnce } from '#cli/pages.ts';
import type { FirewallRule } from '#cloud/schema.ts';

const path = '/api/v1/firewall-rules';

export const rules: Collection<FirewallRule> = {
  plural: 'rules',
  needs: 'any',
  read: atOnce(path),
};

/** Rules have no ids. They are numbered from 1. */
export const columns: Columns<FirewallRule> = {
  NUMBER: (_, index) => String(index + 1),
  PROTOCOL: ({ protocol }) => protocol,
  PORTS: (rule) => toPorts(rule) || '-',
  FROM: ({ source_network }) => source_network,
  DESCRIPTION: ({ description }) => description,
};

/** Prints the rules as the server stored them. */
export async function replaceRules(
  client: Client,
  data: FirewallRule[],
  json: true | undefined,
): Promise<void> {
  const stored = (await client.put<{ data: FirewallRule[] }>(path, { data })).data;
  report(stored, toTable(rules.plural, stored, columns), json);
}

/** `22` or `8000-8100`; empty if the protocol has no ports. */
export const toPorts = ({ port_range: ports }: FirewallRule) => [...new Set(ports)].join('-');
