// A machine's own interface, when we are root: a veth pair into its network namespace, with the rules in
// place before the pair exists. Names come from the machine's id, so removal needs no record.

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
  /** Where our own ssh server may listen on a machine's loopback address. */
  readonly sshPorts: readonly number[];
}

/** Returns the interfaces that must pass packets on for it. */
export async function attachNetwork(
  addressing: Addressing,
  id: string,
  ip: string,
  pid: number,
  rules: readonly InboundRule[],
): Promise<string[]> {
  const { range } = addressing;
  const device = interfaceOf(id);
  const gateway = gatewayOf(range);
  const privateIp = toPrivateAddress(range, ip);
  await applyRules(addressing, id, ip, rules);
  await feed(
    'ip',
    ['-batch', '-'],
    [
      `link add ${device} type veth peer name eth0 netns ${pid}`,
      `addr add ${gateway}/32 dev ${device}`,
      `link set ${device} up`,
      `route add ${privateIp}/32 dev ${device} src ${gateway}`,
    ],
  );
  // Else the kernel refuses what the rules lead here from the machine's loopback address.
  await writeFile(`/proc/sys/net/ipv4/conf/${device}/route_localnet`, '1');
  await feed(
    'nsenter',
    [`--net=/proc/${pid}/ns/net`, 'ip', '-batch', '-'],
    [
      `addr add ${privateIp}/32 dev eth0`,
      'link set eth0 up',
      `route add ${gateway}/32 dev eth0 scope link`,
      `route add default via ${gateway}`,
    ],
  );
  return [device, ...(await findUplinks())];
}

export async function applyRules(
  { range, sshPorts }: Addressing,
  id: string,
  ip: string,
  rules: readonly InboundRule[],
) {
  const privateIp = toPrivateAddress(range, ip);
  const subject = { id, ip, privateIp, sshPorts, nameservers: await findNameservers() };
  await feed('nft', ['-f', '-'], [toRuleset(subject, rules)]);
}

/** Silent about what is not there. The interface goes with the namespace, but not at once. */
export async function detachNetwork(id: string) {
  await execute('ip', ['link', 'delete', interfaceOf(id)]).catch((error: { stderr?: string }) => {
    if (!/cannot find device|no such device/i.test(error.stderr ?? '')) {
      throw new DriverError('unavailable', `ip failed: ${(error.stderr || String(error)).trim()}`);
    }
  });
  // Declared first, so that there is one to delete.
  const table = `table inet ${tableOf(id)}`;
  await feed('nft', ['-f', '-'], [`${table} {}`, `delete ${table}`]);
}

async function findUplinks(): Promise<string[]> {
  const { stdout } = await execute('ip', ['-o', '-4', 'route', 'show', 'default']);
  return [...new Set([...stdout.matchAll(/ dev (\S+)/g)].map((match) => match[1]!))];
}

async function feed(program: string, argv: readonly string[], lines: readonly string[]) {
  const child = spawn(program, argv, { stdio: ['pipe', 'ignore', 'pipe'] });
  let complaint = '';
  child.stderr.on('data', (chunk: Buffer) => {
    complaint = (complaint + chunk).slice(0, 2000);
  });
  child.stdin.on('error', () => {});
  child.stdin.end(`${lines.join('\n')}\n`);
  const code = await new Promise<number | null>((resolve, reject) => {
    child.on('error', reject);
    child.on('close', resolve);
  });
  if (code !== 0) {
    throw new DriverError('unavailable', `${program} failed: ${complaint.trim()}`);
  }
}
