// The nftables rules of one machine, as text: what it may reach, and who may reach it. One table per
// machine, replaced and removed as a whole.

import { DriverError, type InboundRule } from '#cloud/drivers/driver.ts';

/** Every interface of ours on the host starts with this, followed by the start of the machine's id. */
export const interfacePrefix = 'mr-';

export interface RulesetSubject {
  readonly id: string;
  /** Loopback of the host; all but its ssh ports leads to the private address. */
  readonly ip: string;
  readonly privateIp: string;
  readonly sshPorts: readonly number[];
  readonly nameservers: readonly string[];
}

/** Not the internet: other machines of the operator, and the metadata service of a cloud below us. */
const privateNetworks = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.168.0.0/16',
  '224.0.0.0/3',
];

export function interfaceOf(id: string): string {
  return `${interfacePrefix}${id.slice(0, 12)}`;
}

export function tableOf(id: string): string {
  return `millrace_${id}`;
}

/**
 * The host's own clients reach the machine at its loopback address too. What they send is led to the private
 * address before `to_machine` judges it by where it came from, and gets an address that can be answered
 * after. For that the interface takes loopback addresses; `as_sent` keeps the machine from using any, before
 * connections that are none of its own could be told of it.
 */
export function toRuleset(subject: RulesetSubject, rules: readonly InboundRule[]): string {
  const table = `inet ${tableOf(subject.id)}`;
  const device = `"${interfaceOf(subject.id)}"`;
  const ours = `"${interfacePrefix}*"`;
  const asking = subject.nameservers.map(
    (server) => `ip daddr ${server} meta l4proto { tcp, udp } th dport 53 accept`,
  );
  // Declared, deleted and declared again in one transaction: there is no moment without rules.
  return `table ${table} {}
delete table ${table}
table ${table} {
  chain as_sent {
    type filter hook prerouting priority -300; policy accept;
    iifname ${device} ip saddr != ${subject.privateIp} drop
    iifname ${device} ip daddr 127.0.0.0/8 drop
  }
  chain inbound {
    ct state established,related accept
    ${rules.map(toRule).join('\n    ')}
    drop
  }
  chain outbound {
    meta nfproto ipv6 drop
    ct state established,related accept
    oifname ${ours} drop
    ${asking.join('\n    ')}
    ip daddr { ${privateNetworks.join(', ')} } drop
    accept
  }
  chain to_host {
    type filter hook input priority -10; policy accept;
    iifname ${device} ct state established,related accept
    iifname ${device} drop
  }
  chain from_machine {
    type filter hook forward priority -10; policy accept;
    iifname ${device} jump outbound
  }
  chain to_machine {
    type filter hook postrouting priority -10; policy accept;
    oifname ${device} jump inbound
  }
  chain lead_inside {
    type nat hook output priority -100; policy accept;
    ip daddr ${subject.ip} tcp dport { ${subject.sshPorts.join(', ')} } accept
    ip daddr ${subject.ip} dnat ip to ${subject.privateIp}
  }
  chain translate {
    type nat hook postrouting priority 100; policy accept;
    ip saddr ${subject.privateIp} oifname != ${ours} masquerade
    ip saddr 127.0.0.0/8 oifname ${device} masquerade
  }
}
`;
}

function toRule({ protocol, portRange, sourceNetwork }: InboundRule): string {
  if (!/^\d{1,3}(\.\d{1,3}){3}(\/\d{1,2})?$/.test(sourceNetwork)) {
    throw new DriverError('impossible', `"${sourceNetwork}" is not an IPv4 network.`);
  }
  const source = sourceNetwork.endsWith('/0') ? '' : `ip saddr ${sourceNetwork} `;
  const [low, high] = (portRange ?? [0, 65_535]).map((port) => Math.trunc(port));
  switch (protocol) {
    case 'all':
      // Ports are of TCP and UDP; only a range that leaves none out lets in what has no ports.
      return (low ?? 0) <= 1 && high === 65_535
        ? `${source}accept`
        : `${source}meta l4proto { tcp, udp } th dport ${low}-${high} accept`;
    case 'icmp':
      return `${source}meta l4proto icmp accept`;
    default:
      return `${source}${protocol} dport ${low}-${high} accept`;
  }
}
