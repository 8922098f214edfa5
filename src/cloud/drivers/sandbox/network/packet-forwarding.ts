// Enables packet forwarding between machines and the uplink, and disables it when the last machine's
// interface is gone. It is switched per interface, never for the whole host.

import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { interfacePrefix } from './firewall-ruleset.ts';

/** Lists the interfaces switched on. Like the setting, it belongs to the host and is lost at a reboot. */
const stateFile = '/run/millrace/forwarding';

export async function enableForwarding(devices: readonly string[]) {
  for (const device of devices) {
    if ((await readFile(settingOf(device), 'utf8')).trim() === '1') continue;
    const known = await switchedOn();
    // A machine's own interface loses the setting when it is removed.
    if (!device.startsWith(interfacePrefix)) {
      await mkdir(path.dirname(stateFile), { recursive: true, mode: 0o700 });
      await writeFile(stateFile, [...known, device].join('\n'));
    }
    await writeFile(settingOf(device), '1');
  }
}

/** Does nothing while any machine of this host, including other servers', has an interface. */
export async function disableForwardingWhenUnused() {
  const devices = await readdir('/sys/class/net');
  if (devices.some((device) => device.startsWith(interfacePrefix))) return;
  for (const device of await switchedOn()) {
    await writeFile(settingOf(device), '0').catch(() => {});
  }
  await rm(stateFile, { force: true });
}

async function switchedOn(): Promise<string[]> {
  const text = await readFile(stateFile, 'utf8').catch(() => '');
  return text.split('\n').filter((device) => device !== '' && !device.includes('/'));
}

function settingOf(device: string): string {
  return path.join('/proc/sys/net/ipv4/conf', device, 'forwarding');
}
