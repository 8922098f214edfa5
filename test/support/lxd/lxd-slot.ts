// The few places for test daemons on this host: a folder, a bridge and a subnet each, held by one process.
// Whatever a killed holder left in its place is ended and removed by the next one that takes it.

import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { promisify } from 'node:util';

const execute = promisify(execFile);

/** Each has 32 of the addresses that no sandbox is given: those are above 10.77.0.255. */
const slots = [1, 2, 3, 4, 5, 6, 7];
const patienceMs = 60_000;

export const slotFolder = (slot: number) => join(tmpdir(), `millrace-lxd-${slot}`);
export const bridgeOf = (slot: number) => `mrlxd${slot}`;
export const subnetOf = (slot: number) => `10.77.0.${slot * 32}/27`;
/** Network namespace of a cluster's member. */
export const namespaceOf = (slot: number, member: number) => `mrlxd${slot}-${member}`;
export const plainBridgeOf = (slot: number) => `mrplain${slot}`;
export const plainSubnetOf = (slot: number) => `10.77.255.${slot * 16}/28`;

/** A slot is a folder with the pid and start time of its taker. */
export async function takeSlot(): Promise<number> {
  const deadline = Date.now() + patienceMs;
  for (;;) {
    for (const slot of slots) {
      const lock = `${slotFolder(slot)}.lock`;
      const holder = existsSync(lock) ? readFileSync(lock, 'utf8') : '';
      if (holder !== '' && identityOf(Number.parseInt(holder, 10)) === holder) continue;
      rmSync(lock, { force: true });
      try {
        writeFileSync(lock, identityOf(process.pid), { flag: 'wx' });
      } catch {
        continue;
      }
      await sweep(slot, false);
      mkdirSync(slotFolder(slot), { recursive: true, mode: 0o711 });
      return slot;
    }
    if (Date.now() > deadline) throw new Error('every slot for an LXD daemon is taken');
    await setTimeout(500);
  }
}

/** A pid may come again; with its start time it doesn't. */
function identityOf(pid: number): string {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
      .replace(/^.*\) /s, '')
      .split(' ');
    return fields[0] === 'Z' ? '' : `${pid} ${fields[19]}`;
  } catch {
    return '';
  }
}

/** Ends and removes everything that uses the slot's folder or bridge; does nothing if there is nothing. */
export async function sweep(slot: number, release = true) {
  const folder = slotFolder(slot);
  const containers = containersOf(folder);
  for (let round = 0; round < 50; round += 1) {
    const found = processesOf(folder);
    if (found.length === 0) break;
    for (const pid of found) {
      try {
        process.kill(pid, 'SIGKILL');
      } catch {
        // It ended meanwhile.
      }
    }
    await setTimeout(100);
  }
  const quietly = (program: string, ...argv: string[]) => execute(program, argv).catch(() => {});
  for (const namespace of namespacesOf(slot)) await quietly('ip', 'netns', 'delete', namespace);
  for (const bridge of [bridgeOf(slot), plainBridgeOf(slot)]) {
    await quietly('ip', 'link', 'delete', bridge);
  }
  for (const subnet of [subnetOf(slot), plainSubnetOf(slot)]) {
    await quietly('ip', 'route', 'delete', 'unreachable', subnet, 'metric', '9999');
  }
  const mounts = readFileSync('/proc/self/mounts', 'utf8').split('\n');
  const below = mounts
    .map((line) => line.split(' ')[1] ?? '')
    .filter((at) => at.startsWith(folder));
  for (const at of below.reverse()) await quietly('umount', '-l', at);
  for (const table of ['inet lxd', 'inet incus', 'bridge lxd', 'bridge incus']) {
    await removeChains(table.split(' '), [`.${bridgeOf(slot)}`, ...containers.map(nicOf)]);
  }
  rmSync(folder, { recursive: true, force: true });
  if (release) rmSync(`${folder}.lock`, { force: true });
}

const nicOf = (container: string) => `.${container}.eth0`;

/** Removes the rules of a killed daemon. Their tables may be shared; empty ones are unused and removed. */
async function removeChains(table: readonly string[], endings: readonly string[]) {
  const listed = await execute('nft', ['list', 'table', ...table]).catch(() => undefined);
  if (!listed) return;
  const chains = [...listed.stdout.matchAll(/^\tchain (\S+) \{/gm)].map(([, name]) => name!);
  const ours = chains.filter((name) => endings.some((ending) => name.endsWith(ending)));
  for (const verb of ['flush', 'delete']) {
    for (const chain of ours)
      await execute('nft', [verb, 'chain', ...table, chain]).catch(() => {});
  }
  if (ours.length === chains.length)
    await execute('nft', ['delete', 'table', ...table]).catch(() => {});
}

function namespacesOf(slot: number): string[] {
  const known = existsSync('/run/netns') ? readdirSync('/run/netns') : [];
  return known.filter((name) => name.startsWith(namespaceOf(slot, 0).slice(0, -1)));
}

/** Members of a cluster have a folder each. */
function containersOf(folder: string): string[] {
  const entries = existsSync(folder) ? readdirSync(folder) : [];
  const members = entries.filter((name) => /^n\d+$/.test(name));
  return ['.', ...members]
    .map((member) => join(folder, member, 'containers'))
    .flatMap((place) => (existsSync(place) ? readdirSync(place) : []));
}

/** The daemon and its helpers have the folder in command or environment; what runs in its containers is
 * known by their control groups. */
export function processesOf(folder: string): number[] {
  const bears = new RegExp(`${folder}(/|\\0|\\s|$)`);
  const containers = containersOf(folder);
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .filter((name) => {
      const read = (file: string) => {
        try {
          return readFileSync(`/proc/${name}/${file}`, 'utf8');
        } catch {
          return '';
        }
      };
      if (/^\d+ \(.*\) Z/s.test(read('stat'))) return false;
      const group = /\/lxc\.payload\.([^/\s]+)/.exec(read('cgroup'))?.[1] ?? '';
      return (
        containers.includes(group) || bears.test(read('cmdline')) || bears.test(read('environ'))
      );
    })
    .map(Number);
}
