// Gives a machine its own interface if the server is root: a veth pair into its network namespace. Its rules
// must be in place before. Names derive from the machine's id, so removal needs no record.

import { execFile, spawn } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { DriverError, type InboundRule } from '#cloud/drivers/driver.ts';
import { type AddressRange, gatewayOf, toPrivateAddress } from './addresses.ts';
import { interfaceOf, tableOf, toRuleset } from './firewall-ruleset.ts';
import { findNameservers } from './resolver.ts';

const execute = promisify(execFile);

export interface Addressing {
  readonly range: AddressRange;
  /** Ports on which the built-in ssh server may listen at a machine's loopback address. */
  readonly sshPorts: readonly number[];
}

export interface NetworkTarget {
  readonly id: string;
  readonly ip: string;
  /** Host pid of a process in the machine's network namespace. */
  readonly pid: number;
}

/** What the rules of one machine follow from. */
export interface RuledMachine {
  readonly id: string;
  readonly ip: string;
  readonly rules: readonly InboundRule[];
}

/** Returns the interfaces that must forward packets for the machine. */
export async function attachNetwork(
  { range }: Addressing,
  { id, ip, pid }: NetworkTarget,
): Promise<string[]> {
  const device = interfaceOf(id);
  const gateway = gatewayOf(range);
  const privateIp = toPrivateAddress(range, ip);
  const [outer, inner] = [toMacAddress('02:4c', privateIp), toMacAddress('02:4d', privateIp)];
  // The host's ARP table is shared by all machines, and each can fill it. Permanent entries need no room in it.
  await runWithInput(
    'ip',
    ['-batch', '-'],
    [
      `link add ${device} address ${outer} type veth peer name eth0 address ${inner} netns ${pid}`,
      `addr add ${gateway}/32 dev ${device}`,
      `link set ${device} up`,
      `route add ${privateIp}/32 dev ${device} src ${gateway}`,
      `neigh add ${privateIp} lladdr ${inner} dev ${device} nud permanent`,
    ],
  );
  const setKernel = (name: string) => writeFile(`/proc/sys/net/ipv4/conf/${device}/${name}`, '1');
  // Without this the kernel drops packets that the rules redirect from the machine's loopback address.
  await setKernel('route_localnet');
  // ARP does not pass the rules. The host answers the machine's own address only, and for the gateway only.
  for (const name of ['arp_filter', 'arp_ignore']) await setKernel(name);
  await runWithInput(
    'nsenter',
    [`--net=/proc/${pid}/ns/net`, 'ip', '-batch', '-'],
    [
      `addr add ${privateIp}/32 dev eth0`,
      'link set eth0 up',
      `route add ${gateway}/32 dev eth0 scope link`,
      `neigh add ${gateway} lladdr ${outer} dev eth0 nud permanent`,
      `route add default via ${gateway}`,
    ],
  );
  return [device, ...(await findUplinks())];
}

/** Replaces the rules of `machines` in one transaction. `members` are all machines of their account. */
export async function writeRulesets(
  { range, sshPorts }: Addressing,
  machines: readonly RuledMachine[],
  members: readonly RuledMachine[],
) {
  const nameservers = await findNameservers();
  const addresses = members.map(({ id, ip }) => ({ id, privateIp: toPrivateAddress(range, ip) }));
  const rulesets = machines.map(({ id, ip, rules }) => {
    const siblings = addresses.filter((member) => member.id !== id);
    const privateIp = toPrivateAddress(range, ip);
    return toRuleset({ id, ip, privateIp, sshPorts, nameservers, siblings }, rules);
  });
  await runWithInput('nft', ['-f', '-'], rulesets);
}

/** Succeeds if there is nothing to remove. The kernel removes the interface with its namespace, but late. */
export async function detachNetwork(id: string) {
  await execute('ip', ['link', 'delete', interfaceOf(id)]).catch((error: { stderr?: string }) => {
    if (!/cannot find device|no such device/i.test(error.stderr ?? '')) {
      throw new DriverError('unavailable', `ip failed: ${(error.stderr || String(error)).trim()}`);
    }
  });
  // Declares the table first: deleting a missing one is an error.
  const table = `table inet ${tableOf(id)}`;
  await runWithInput('nft', ['-f', '-'], [`${table} {}`, `delete ${table}`]);
}

function toMacAddress(prefix: string, ip: string): string {
  const octets = ip.split('.').map((octet) => Number(octet).toString(16).padStart(2, '0'));
  return [prefix, ...octets].join(':');
}

async function findUplinks(): Promise<string[]> {
  const { stdout } = await execute('ip', ['-o', '-4', 'route', 'show', 'default']);
  return [...new Set([...stdout.matchAll(/ dev (\S+)/g)].map((match) => match[1]!))];
}

async function runWithInput(program: string, argv: readonly string[], lines: readonly string[]) {
  const child = spawn(program, argv, { stdio: ['pipe', 'ignore', 'pipe'] });
  let stderr = '';
  child.stderr.on('data', (chunk: Buffer) => {
    stderr = (stderr + chunk).slice(0, 2000);
  });
  child.stdin.on('error', () => {});
  child.stdin.end(`${lines.join('\n')}\n`);
  const code = await new Promise<number | null>((resolve, reject) => {
    child.on('error', reject);
    child.on('close', resolve);
  });
  if (code !== 0) {
    throw new DriverError('unavailable', `${program} failed: ${stderr.trim()}`);
  }
}
