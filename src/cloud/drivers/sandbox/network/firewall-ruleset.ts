// The nftables ruleset of one machine as text: what it may reach and which addresses may reach it. Each
// machine has one table, which is replaced and removed as a whole.

import { DriverError, type InboundRule } from '#cloud/drivers/driver.ts';

/** Prefix of every machine's interface on the host; the first digits of the machine's id follow. */
export const interfacePrefix = 'mr-';

/** Connections of one machine that the host tracks at a time. The host's table is shared by all machines. */
export const maxConnections = 4096;

export interface RulesetSubject {
  readonly id: string;
  /** Loopback address on the host. All ports but the ssh ports are redirected to the private address. */
  readonly ip: string;
  readonly privateIp: string;
  readonly sshPorts: readonly number[];
  readonly nameservers: readonly string[];
  /** The other machines of the account. An ended one does no harm: no other machine gets its interface. */
  readonly siblings: readonly { readonly id: string; readonly privateIp: string }[];
}

/** Networks that are not the internet: the operator's machines and an underlying cloud's metadata service. */
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
 * Clients on the host may also use the machine's loopback address. Their packets are redirected to the private
 * address, filtered by source in `to_machine`, and then masqueraded so that the machine can respond. This
 * needs an interface that accepts loopback addresses; `as_sent` drops any that the machine itself sends, before
 * connection tracking could match them to a connection that is not the machine's.
 *
 * Machines of one account reach each other on every port. A sibling is recognised by its interface, which it can't
 * spoof, in `forwarded`, where the kernel knows both interfaces; `inbound` may then trust its address.
 * The machine's ssh server is on the host, so `sibling_ssh` redirects siblings to it.
 */
export function toRuleset(subject: RulesetSubject, rules: readonly InboundRule[]): string {
  const table = `inet ${tableOf(subject.id)}`;
  const device = `"${interfaceOf(subject.id)}"`;
  const machineDevices = `"${interfacePrefix}*"`;
  const nameserverRules = subject.nameservers.map(
    (server) => `ip daddr ${server} meta l4proto { tcp, udp } th dport 53 accept`,
  );
  // One transaction declares, deletes and declares the table again, so rules apply at every moment.
  const sshPorts = `tcp dport { ${subject.sshPorts.join(', ')} }`;
  return `table ${table} {}
delete table ${table}
table ${table} {
  ${toSiblingSets(subject.siblings)}
  chain as_sent {
    type filter hook prerouting priority -300; policy accept;
    iifname ${device} ip saddr != ${subject.privateIp} drop
    iifname ${device} ip daddr 127.0.0.0/8 drop
  }
  chain counted {
    ct state new ct count over ${maxConnections} drop
  }
  chain inbound {
    ct state established,related accept
    ip saddr @sibling_addresses accept
    ${rules.map(toRule).join('\n    ')}
    drop
  }
  chain outbound {
    meta nfproto ipv6 drop
    ct state established,related accept
    oifname @sibling_devices accept
    oifname ${machineDevices} drop
    ${nameserverRules.join('\n    ')}
    ip daddr { ${privateNetworks.join(', ')} } drop
    accept
  }
  chain to_host {
    type filter hook input priority -10; policy accept;
    iifname ${device} jump counted
    iifname ${device} ct state established,related accept
    iifname ${device} ct original ip daddr @sibling_addresses ct status dnat accept
    iifname ${device} drop
  }
  chain forwarded {
    type filter hook forward priority -10; policy accept;
    iifname ${device} jump counted
    iifname ${device} jump outbound
    oifname ${device} iifname ${machineDevices} iifname != @sibling_devices drop
    oifname ${device} iifname != ${machineDevices} ip saddr @sibling_addresses drop
  }
  chain to_machine {
    type filter hook postrouting priority -10; policy accept;
    oifname ${device} jump counted
    oifname ${device} jump inbound
  }
  chain sibling_ssh {
    type nat hook prerouting priority -100; policy accept;
    iifname @sibling_devices ip daddr ${subject.privateIp} ${sshPorts} dnat ip to ${subject.ip}
  }
  chain lead_inside {
    type nat hook output priority -100; policy accept;
    ip daddr ${subject.ip} ${sshPorts} accept
    ip daddr ${subject.ip} dnat ip to ${subject.privateIp}
  }
  chain translate {
    type nat hook postrouting priority 100; policy accept;
    ip saddr ${subject.privateIp} oifname != ${machineDevices} masquerade
    ip saddr 127.0.0.0/8 oifname ${device} masquerade
  }
}
`;
}

function toSiblingSets(siblings: RulesetSubject['siblings']): string {
  const set = (name: string, type: string, elements: readonly string[]) => {
    const content = elements.length === 0 ? '' : ` elements = { ${elements.join(', ')} }`;
    return `set ${name} { type ${type};${content} }`;
  };
  const devices = siblings.map(({ id }) => `"${interfaceOf(id)}"`);
  const addresses = siblings.map(({ privateIp }) => privateIp);
  return `${set('sibling_devices', 'ifname', devices)}
  ${set('sibling_addresses', 'ipv4_addr', addresses)}`;
}

function toRule({ protocol, portRange, sourceNetwork }: InboundRule): string {
  if (!/^\d{1,3}(\.\d{1,3}){3}(\/\d{1,2})?$/.test(sourceNetwork)) {
    throw new DriverError('impossible', `"${sourceNetwork}" is not an IPv4 network.`);
  }
  const source = sourceNetwork.endsWith('/0') ? '' : `ip saddr ${sourceNetwork} `;
  const [low, high] = (portRange ?? [0, 65_535]).map((port) => Math.trunc(port));
  switch (protocol) {
    case 'all':
      // Ports imply TCP or UDP. Only a range of all ports also allows protocols without ports.
      return (low ?? 0) <= 1 && high === 65_535
        ? `${source}accept`
        : `${source}meta l4proto { tcp, udp } th dport ${low}-${high} accept`;
    case 'icmp':
      return `${source}meta l4proto icmp accept`;
    default:
      return `${source}${protocol} dport ${low}-${high} accept`;
  }
}
