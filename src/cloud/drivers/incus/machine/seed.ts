// How a machine gets its name, keys, address and user data. Images with cloud-init read them as on any cloud; the
// small image has templates for them; any other image gets files pushed before it starts.

import { stringify } from 'yaml';
import { DriverError, type MachineSpec } from '#cloud/drivers/driver.ts';
import type { DaemonClient } from '#cloud/drivers/incus/daemon/client.ts';
import type { Flavor } from '#cloud/drivers/incus/daemon/flavor.ts';
import { type AddressPlan, prefixOf } from '#cloud/drivers/incus/network/addresses.ts';
import { type PrivateNic, toMac } from '#cloud/drivers/incus/network/nics.ts';

/** Configuration keys for every kind of image: each reads its own and ignores the others. */
export interface MachineSeed {
  readonly config: Readonly<Record<string, string>>;
  readonly files: readonly SeedFile[];
}

/** How a machine reaches others of its account. */
interface SeedOptions {
  /** Routes by the gateway; empty for none. */
  readonly routes?: string;
  readonly privateNic?: PrivateNic | null;
  /** The script that the user data stands for; empty for none. */
  readonly firstBoot?: string;
}

interface SeedFile {
  readonly path: string;
  readonly mode: string;
  readonly text: string;
}

export function toMachineSeed(
  spec: MachineSpec,
  plan: AddressPlan,
  address: string,
  { routes = '', privateNic = null, firstBoot = '' }: SeedOptions = {},
): MachineSeed {
  const keys = `${spec.authorizedKeys.join('\n')}\n`;
  const network = `${address}/${prefixOf(plan)} ${plan.gateway}`;
  const own = privateNic ? `${privateNic.address}/${prefixOf(privateNic.plan)}` : '';
  return {
    config: {
      'user.millrace.hostname': spec.hostname,
      'user.millrace.keys': keys.trim(),
      'user.millrace.network': network,
      ...(routes === '' ? {} : { 'user.millrace.routes': routes }),
      ...(own === '' ? {} : { 'user.millrace.private': own }),
      ...(firstBoot === '' ? {} : { 'user.millrace.first-boot': firstBoot }),
      ...toCloudInit(spec, plan, address, own),
    },
    files: [
      { path: '/etc/hostname', mode: '0644', text: `${spec.hostname}\n` },
      { path: '/etc/millrace/authorized_keys', mode: '0644', text: keys },
      { path: '/etc/millrace/network', mode: '0644', text: `${network}\n` },
      { path: '/etc/millrace/private', mode: '0644', text: own },
      { path: '/etc/millrace/first-boot', mode: '0600', text: firstBoot },
      { path: '/etc/millrace/seed', mode: '0755', text: seedScript },
      { path: unitPath, mode: '0644', text: seedUnit },
    ],
  };
}

/**
 * The user's own data is passed on unchanged. Keys go into the metadata, because lists there are added to the
 * user's, whereas the user's lists would replace those in vendor data.
 */
function toCloudInit(spec: MachineSpec, plan: AddressPlan, address: string, own: string) {
  const vendor = {
    ssh_pwauth: false,
    system_info: {
      default_user: {
        name: 'ubuntu',
        gecos: 'Ubuntu',
        shell: '/bin/bash',
        lock_passwd: true,
        sudo: ['ALL=(ALL) NOPASSWD:ALL'],
      },
    },
  };
  const meta = { 'local-hostname': spec.hostname, 'public-keys': [...spec.authorizedKeys] };
  return {
    'user.meta-data': stringify(meta),
    'cloud-init.vendor-data': `#cloud-config\n${stringify(vendor)}`,
    ...(plan.managed && own === ''
      ? {}
      : { 'cloud-init.network-config': stringify(toNetworkConfig(spec.id, plan, address, own)) }),
    ...(spec.userData === null ? {} : { 'cloud-init.user-data': spec.userData }),
  };
}

function toNetworkConfig(id: string, plan: AddressPlan, address: string, own: string) {
  // An unmanaged bridge has no DHCP server for the address.
  const fixed = {
    type: 'static',
    address: `${address}/${prefixOf(plan)}`,
    gateway: plan.gateway,
    dns_nameservers: [plan.gateway],
  };
  const eth0 = {
    type: 'physical',
    name: 'eth0',
    subnets: [plan.managed ? { type: 'dhcp' } : fixed],
  };
  if (own === '') return { version: 1, config: [eth0] };
  // Static: from DHCP the machine would also take a default route.
  const eth1 = {
    type: 'physical',
    name: 'eth1',
    mac_address: toMac(id, 'eth1'),
    subnets: [{ type: 'static', address: own }],
  };
  return { version: 1, config: [{ ...eth0, mac_address: toMac(id, 'eth0') }, eth1] };
}

/** Decides by what the instance got from its image. */
export async function needsFiles(client: DaemonClient, instancePath: string): Promise<boolean> {
  const metadata = await client.get<{ templates?: Record<string, unknown> | null }>(
    `${instancePath}/metadata`,
  );
  const templates = Object.keys(metadata.templates ?? {});
  if (templates.some((file) => /^\/(etc\/millrace|var\/lib\/cloud\/seed)\//.test(file)))
    return false;
  const found = await client
    .bytes(`${instancePath}/files?path=/usr/bin/cloud-init`, 1024)
    .catch(() => undefined);
  return found === undefined;
}

export async function pushFiles(
  client: DaemonClient,
  flavor: Flavor,
  instancePath: string,
  seed: MachineSeed,
): Promise<void> {
  const push = (path: string, type: string, mode: string, text: string) =>
    client.run('POST', `${instancePath}/files`, {
      query: { path },
      body: Buffer.from(text),
      headers: {
        [`${flavor.headerPrefix}-type`]: type,
        [`${flavor.headerPrefix}-mode`]: mode,
        [`${flavor.headerPrefix}-uid`]: '0',
        [`${flavor.headerPrefix}-gid`]: '0',
      },
    });
  const folders = ['/etc/millrace', '/etc/systemd', '/etc/systemd/system', wantsPath];
  try {
    for (const folder of folders) await push(folder, 'directory', '0755', '');
    for (const { path, mode, text } of seed.files) await push(path, 'file', mode, text);
    // systemd enables a unit by a link.
    await push(`${wantsPath}/${unitName}`, 'symlink', '0777', unitPath);
  } catch (error) {
    const { message } = error as Error;
    throw new DriverError('unavailable', `Its files could not be written: ${message}`, error);
  }
}

const unitName = 'millrace-seed.service';
const wantsPath = '/etc/systemd/system/multi-user.target.wants';
const unitPath = `/etc/systemd/system/${unitName}`;

const seedUnit = `[Unit]
Description=Name, keys and user data of this machine
After=network.target
Before=ssh.service sshd.service

[Service]
Type=oneshot
ExecStart=/bin/sh /etc/millrace/seed
StandardOutput=journal+console
RemainAfterExit=yes

[Install]
WantedBy=multi-user.target
`;

const seedScript = `#!/bin/sh
id ubuntu >/dev/null 2>&1 || useradd -m -s /bin/bash ubuntu
home=$(getent passwd ubuntu | cut -d: -f6)
mkdir -p "$home/.ssh" /etc/sudoers.d
[ -e "$home/.ssh/authorized_keys" ] || cp /etc/millrace/authorized_keys "$home/.ssh/authorized_keys"
chown -R ubuntu: "$home/.ssh"
chmod 700 "$home/.ssh"
chmod 600 "$home/.ssh/authorized_keys"
echo 'ubuntu ALL=(ALL) NOPASSWD:ALL' >/etc/sudoers.d/90-millrace
chmod 440 /etc/sudoers.d/90-millrace
if [ -s /etc/millrace/private ]; then
  ip link set eth1 up
  ip addr replace "$(cat /etc/millrace/private)" dev eth1
fi
if [ -s /etc/millrace/first-boot ] && [ ! -e /var/lib/millrace-first-boot ]; then
  touch /var/lib/millrace-first-boot
  /bin/sh /etc/millrace/first-boot
fi
`;
