// Lets the host pass packets on between a machine and the uplink, and takes that back when the last
// machine's interface is gone. Only the interfaces concerned are switched, never the whole host.

import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { interfacePrefix } from './firewall-ruleset.ts';

/** `memory` is a file that names the interfaces we switched on, for after a crash. */
export async function switchOn(memory: string, devices: readonly string[]) {
  for (const device of devices) {
    if ((await readFile(settingOf(device), 'utf8')).trim() === '1') continue;
    const known = await switchedOn(memory);
    // A machine's own interface takes its setting along when it goes.
    if (!device.startsWith(interfacePrefix)) await writeFile(memory, [...known, device].join('\n'));
    await writeFile(settingOf(device), '1');
  }
}

/** Does nothing while any machine of this host, also of another server, has an interface. */
export async function switchOffWhenUnused(memory: string) {
  const devices = await readdir('/sys/class/net');
  if (devices.some((device) => device.startsWith(interfacePrefix))) return;
  for (const device of await switchedOn(memory)) {
    await writeFile(settingOf(device), '0').catch(() => {});
  }
  await rm(memory, { force: true });
}

async function switchedOn(memory: string): Promise<string[]> {
  const text = await readFile(memory, 'utf8').catch(() => '');
  return text.split('\n').filter((device) => device !== '' && !device.includes('/'));
}

function settingOf(device: string): string {
  return path.join('/proc/sys/net/ipv4/conf', device, 'forwarding');
}
