// An inbound rule: validated, stored and returned as it was sent, and converted for the driver.

import { isIPv4 } from 'node:net';
import type { InboundRule } from '#cloud/drivers/driver.ts';
import { invalidParameters } from '#cloud/errors.ts';
import type { FirewallRule } from '#cloud/schema.ts';

const anywhere = '0.0.0.0/0';

/** The rules of an account that has never set any: SSH and ping are open. */
export const defaultRules: FirewallRule[] = [
  { protocol: 'tcp', port_range: [22, 22], source_network: anywhere, description: 'ssh' },
  { protocol: 'icmp', source_network: anywhere, description: 'ping' },
];

/** Allows all inbound traffic. */
export const openRules: readonly InboundRule[] = [
  { protocol: 'all', portRange: null, sourceNetwork: anywhere },
];

/** Checks what a schema can't express and drops unknown members. `member` is the name of the rules in the
 * body. */
export const parseRules = (rules: readonly FirewallRule[], member: 'data' | 'rules' = 'rules') =>
  rules.map((rule, index) => parseRule(rule, `${member}[${index}]`));

function parseRule(rule: FirewallRule, place: string): FirewallRule {
  const { protocol, source_network, description } = rule;
  const range = rule.port_range ?? undefined;
  const at = (member: string) => `Error in request body at '${place}.${member}'`;
  if (protocol === 'icmp' && range !== undefined) {
    throw invalidParameters(`${at('port_range')}: icmp has no ports`);
  }
  if (protocol !== 'icmp' && range === undefined) {
    throw invalidParameters(`${at('port_range')}: Field required`);
  }
  if (range !== undefined && (range[0] ?? 0) > (range[1] ?? 0)) {
    throw invalidParameters(`${at('port_range')}: the first port is above the last`);
  }
  if (!isNetwork(source_network)) {
    throw invalidParameters(`${at('source_network')}: Input is not a valid IPv4 network`);
  }
  return { protocol, ...(range && { port_range: range }), source_network, description };
}

function isNetwork(text: string): boolean {
  const [address = '', bits, ...rest] = text.split('/');
  return isIPv4(address) && rest.length === 0 && (bits === undefined || isPrefix(bits));
}

const isPrefix = (bits: string) => /^\d{1,2}$/.test(bits) && Number(bits) <= 32;

export function toInboundRule({ protocol, port_range, source_network }: FirewallRule): InboundRule {
  const [low, high] = port_range ?? [];
  return {
    protocol,
    portRange: low === undefined || high === undefined ? null : [low, high],
    sourceNetwork: source_network.includes('/') ? source_network : `${source_network}/32`,
  };
}
