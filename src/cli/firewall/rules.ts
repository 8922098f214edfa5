// Reads, replaces and prints the account's firewall rules. The API replaces all of them at once.

import type { Client } from '#cli/client.ts';
import { report, toTable } from '#cli/output.ts';
import type { FirewallRule } from '#cloud/schema.ts';

const path = '/api/v1/firewall-rules';

export const readRules = async (client: Client) =>
  (await client.get<{ data: FirewallRule[] }>(path)).data;

/** Prints the rules as the server stored them. */
export async function replaceRules(
  client: Client,
  data: FirewallRule[],
  json: true | undefined,
): Promise<void> {
  const stored = (await client.put<{ data: FirewallRule[] }>(path, { data })).data;
  report(stored, renderRules(stored), json);
}

/** Numbers them from 1. */
export const renderRules = (rules: readonly FirewallRule[]) =>
  toTable(
    'rules',
    ['NUMBER', 'PROTOCOL', 'PORTS', 'FROM', 'DESCRIPTION'],
    rules.map((rule, index) => [
      String(index + 1),
      rule.protocol,
      toPorts(rule) || '-',
      rule.source_network,
      rule.description,
    ]),
  );

/** `22` or `8000-8100`; empty if the protocol has no ports. */
export const toPorts = ({ port_range: ports }: FirewallRule) => [...new Set(ports)].join('-');
