// Converts firewall rules between the form, where ports are text, and the API, where they are two numbers.

import type { FirewallRule } from '#cloud/schema.ts';
import { FieldProblem } from '../field-errors.ts';

export interface RuleFields {
  /** Identifies the row on the screen; rules have no id in the API. */
  id: string;
  protocol: FirewallRule['protocol'];
  /** `22`, `8000-9000` or `all`. Empty only until the rule is saved. */
  ports: string;
  source: string;
  description: string;
}

const allPorts = [1, 65535];
/** Every port is a choice to be typed: a field left empty must not open a machine. */
const everyPort = 'all';
const anywhere = '0.0.0.0/0';

/** Pages served over plain HTTP have no crypto.randomUUID. */
const newId = () => Math.random().toString(36);

export const newRule = (): RuleFields => ({
  id: newId(),
  protocol: 'tcp',
  ports: '',
  source: anywhere,
  description: '',
});

export function toFields(rule: FirewallRule): RuleFields {
  return {
    id: newId(),
    protocol: rule.protocol,
    ports: toPortText(rule.port_range),
    source: rule.source_network,
    description: rule.description,
  };
}

/** Throws an error for the field with the ports. */
export function parseRule(fields: RuleFields, index: number): FirewallRule {
  const { protocol, ports, source, description } = fields;
  const rule = { protocol, source_network: source.trim(), description: description.trim() };
  return protocol === 'icmp' ? rule : { ...rule, port_range: parsePorts(ports, index) };
}

function parsePorts(text: string, index: number): number[] {
  if (text.trim().toLowerCase() === everyPort) return allPorts;
  const [, low, high = low] = /^\s*(\d{1,5})\s*(?:[-–]\s*(\d{1,5})\s*)?$/.exec(text) ?? [];
  if (low === undefined) {
    throw new FieldProblem(
      `rules[${index}].port_range`,
      `${text.trim() === '' ? '' : `“${text}” is not a valid port. `}Enter a port such as 22, a range such as 8000-9000, or ${everyPort}.`,
    );
  }
  return [Number(low), Number(high)];
}

function toPortText(range: FirewallRule['port_range']): string {
  const [low, high] = range ?? allPorts;
  if (low === allPorts[0] && high === allPorts[1]) return everyPort;
  return low === high ? String(low) : `${low}-${high}`;
}

/** A rule as text, e.g. `tcp 22 from anywhere`. */
export function toRuleText(rule: FirewallRule): string {
  const ports =
    rule.protocol === 'icmp'
      ? ''
      : ` ${toPortText(rule.port_range).replace(everyPort, 'all ports')}`;
  const source = rule.source_network === anywhere ? 'anywhere' : rule.source_network;
  return `${rule.protocol}${ports} from ${source}`;
}
