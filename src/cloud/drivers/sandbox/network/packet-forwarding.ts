// Lets the host pass packets on between a machine and the uplink, and takes that back when the last
// machine's interface is gone. Only the interfaces concerned are switched, never the whole host.

import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { interfacePrefix } from './firewall-ruleset.ts';

/** Names the interfaces we switched on. Like the switch itself, it is the host's and ends with its boot. */
const memory = '/run/millrace/forwarding';

export async function switchOn(devices: readonly string[]) {
  for (const device of devices) {
    if ((await readFile(settingOf(device), 'utf8')).trim() === '1') continue;
    const known = await switchedOn();
    // A machine's own interface takes its setting along when it goes.
    if (!device.startsWith(interfacePrefix)) {
      await mkdir(path.dirname(memory), { recursive: true, mode: 0o700 });
      await writeFile(memory, [...known, device].join('\n'));
    }
    await writeFile(settingOf(device), '1');
  }
}

/** Does nothing while any machine of this host, also of another server, has an interface. */
export async function switchOffWhenUnused() {
  const devices = await readdir('/sys/class/net');
  if (devices.some((device) => device.startsWith(interfacePrefix))) return;
  for (const device of await switchedOn()) {
    await writeFile(settingOf(device), '0').catch(() => {});
  }
  await rm(memory, { force: true });
}

async function switchedOn(): Promise<string[]> {
  const text = await readFile(memory, 'utf8').catch(() => '');
  return text.split('\n').filter((device) => device !== '' && !device.includes('/'));
}

function settingOf(device: string): string {
  return path.join('/proc/sys/net/ipv4/conf', device, 'forwarding');
}
