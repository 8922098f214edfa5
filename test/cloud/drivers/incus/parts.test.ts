// The parts of the incus driver that need no daemon: what differs between LXD and Incus, GPUs and their
// slices, addresses, rules, and the certificate.

import assert from 'node:assert/strict';
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { describe, test } from 'node:test';
import { parse } from 'yaml';
import type { MachineSpec } from '#cloud/drivers/driver.ts';
import { createIdentity } from '#cloud/drivers/incus/daemon/client-certificate.ts';
import { DaemonError } from '#cloud/drivers/incus/daemon/daemon-response.ts';
import { parseInstance } from '#cloud/drivers/incus/daemon/events.ts';
import { engineOf, flavorOf, tokenFields } from '#cloud/drivers/incus/daemon/flavor.ts';
import { toGpus } from '#cloud/drivers/incus/inventory.ts';
import { toCreateRequest, toGpu } from '#cloud/drivers/incus/machine/instance.ts';
import { toMachineSeed } from '#cloud/drivers/incus/machine/seed.ts';
import { type AddressPlan, chooseNetworkAddress } from '#cloud/drivers/incus/network/addresses.ts';
import { toAclRules } from '#cloud/drivers/incus/network/firewall.ts';
import { toNics } from '#cloud/drivers/incus/network/nics.ts';

const plan: AddressPlan = {
  network: 'br0',
  managed: true,
  subnet: '10.77.0.0/29',
  gateway: '10.77.0.1',
  first: '10.77.0.1',
  last: '10.77.0.6',
};

const spec: MachineSpec = {
  id: '0123456789abcdef0123456789abcdef',
  node: null,
  hostname: 'box',
  ip: null,
  vcpus: 4,
  memoryGib: 16,
  storageGib: 100,
  gpus: ['0000:81:00.0', '0000:c1:00.0/MIG-5c2f'],
  authorizedKeys: ['ssh-ed25519 AAAA one', 'ssh-ed25519 BBBB two'],
  filesystems: [],
  userData: '#!/bin/sh\necho {{ hi }}\n',
  image: 'default',
  firewall: [],
};

function instance(type: 'container' | 'virtual-machine', changes: Partial<MachineSpec> = {}) {
  const wanted = { ...spec, ...changes };
  return toCreateRequest(wanted, {
    owner: 'us',
    pool: 'default',
    profiles: ['default'],
    address: '10.77.0.3',
    plan,
    privateNic: null,
    seed: toMachineSeed(wanted, plan, '10.77.0.3'),
    image: { fingerprint: 'f', type },
    filesystems: { devices: {}, mapsUser: false },
  });
}

describe('parts of the incus driver', () => {
  test('LXD and Incus differ in headers and in where a token goes', () => {
    const server = (name: string, version: string) => ({
      auth: 'trusted',
      api_extensions: [],
      environment: { server: name, server_version: version },
    });
    assert.equal(flavorOf(server('lxd', '5.0.2')).headerPrefix, 'X-LXD');
    assert.equal(flavorOf(server('incus', '6.0.4')).headerPrefix, 'X-Incus');
    assert.equal(engineOf(server('incus', '6.0.4')), 'incus 6.0.4');
    assert.deepEqual(tokenFields('t'), { password: 't', trust_token: 't' });
  });

  test('GPUs are listed by PCI address with the vendor’s model, sliced ones by their slices', () => {
    const card = (pci_address: string, model: string) => ({
      pci_address,
      vendor_id: '10de',
      nvidia: { model },
    });
    const gpus = toGpus(
      [
        card('0000:c1:00.0', 'NVIDIA H100 80GB HBM3'),
        card('0000:81:00.0', 'NVIDIA A10'),
        { pci_address: '0000:00:02.0', vendor_id: '8086', product: 'Intel graphics' },
        { pci_address: '0000:d1:00.0', vendor_id: '10de', product: 'GH100 [H200 SXM 141GB]' },
      ],
      {
        '0000:c1:00.0': [
          { uuid: 'MIG-a', profile: '3g.40gb' },
          { uuid: 'MIG-b', profile: '1g.10gb' },
        ],
      },
    );
    assert.deepEqual(gpus, [
      { address: '0000:81:00.0', model: 'NVIDIA A10', memoryGib: 24 },
      { address: '0000:c1:00.0/MIG-a', model: 'NVIDIA H100 80GB HBM3 MIG 3g.40gb', memoryGib: 40 },
      { address: '0000:c1:00.0/MIG-b', model: 'NVIDIA H100 80GB HBM3 MIG 1g.10gb', memoryGib: 10 },
      { address: '0000:d1:00.0', model: 'NVIDIA H200 SXM 141GB', memoryGib: 141 },
    ]);
  });

  test('a container gets its GPUs by address with the vendor’s runtime, a virtual machine without', () => {
    const container = instance('container');
    assert.equal(container.config['nvidia.runtime'], 'true');
    assert.deepEqual(container.devices.gpu0, {
      type: 'gpu',
      gputype: 'physical',
      pci: '0000:81:00.0',
    });
    assert.deepEqual(container.devices.gpu1, {
      type: 'gpu',
      gputype: 'mig',
      pci: '0000:c1:00.0',
      'mig.uuid': 'MIG-5c2f',
    });
    const virtual = instance('virtual-machine');
    assert.equal(virtual.type, 'virtual-machine');
    assert.equal(virtual.config['nvidia.runtime'], undefined);
    assert.equal(
      instance('container', { gpus: ['/dev/zero'] }).config['nvidia.runtime'],
      undefined,
    );
    assert.throws(() => toGpu('GPU-uuid', 0), { failure: 'impossible' });
  });

  test('limits come from the instance type, including the disk’s', () => {
    const { config, devices } = instance('container');
    assert.equal(config['limits.cpu'], '4');
    assert.equal(config['limits.memory'], '16GiB');
    assert.equal(devices.root?.size, '100GiB');
  });

  test('keys and name are added beside the user data, which stays unchanged', () => {
    const { config } = toMachineSeed(spec, plan, '10.77.0.3');
    assert.equal(config['cloud-init.user-data'], spec.userData);
    assert.deepEqual(parse(config['user.meta-data']!), {
      'local-hostname': 'box',
      'public-keys': spec.authorizedKeys,
    });
    assert.equal(config['cloud-init.network-config'], undefined);
    const foreign = toMachineSeed(spec, { ...plan, managed: false }, '10.77.0.3').config;
    assert.match(foreign['cloud-init.network-config']!, /10\.77\.0\.3\/29/);
  });

  test('cloud-init sets the address on the private network, and takes no route from it', () => {
    const privateNic = {
      plan: { ...plan, network: 'ovn', subnet: '10.78.0.1/24' },
      address: '10.78.0.9',
    };
    const { config } = toMachineSeed(spec, plan, '10.77.0.3', { privateNic });
    const devices = toNics(spec.id, { plan, address: '10.77.0.3', privateNic });
    assert.deepEqual(parse(config['cloud-init.network-config']!).config, [
      {
        type: 'physical',
        name: 'eth0',
        subnets: [{ type: 'dhcp' }],
        mac_address: devices.eth0?.hwaddr,
      },
      {
        type: 'physical',
        name: 'eth1',
        mac_address: devices.eth1?.hwaddr,
        subnets: [{ type: 'static', address: '10.78.0.9/24' }],
      },
    ]);
    assert.equal(devices.eth0?.hwaddr, '0a:01:23:45:67:89');
    assert.notEqual(devices.eth1?.hwaddr, devices.eth0?.hwaddr);
  });

  test('an id always gets the same address, never the gateway’s, and no address is given twice', () => {
    const taken = new Set<string>();
    for (let count = 0; count < 5; count += 1) {
      const address = chooseNetworkAddress(plan, spec.id, taken);
      assert.equal(chooseNetworkAddress(plan, spec.id, taken), address);
      assert.ok(!taken.has(address) && address !== plan.gateway);
      taken.add(address);
    }
    assert.throws(() => chooseNetworkAddress(plan, spec.id, taken), { failure: 'unavailable' });
  });

  test('rules become entries for the machine’s address, and the host may always connect to ssh', () => {
    const rules = toAclRules('x', '10.77.0.3', '10.77.0.1', [
      { protocol: 'all', portRange: [80, 90], sourceNetwork: '0.0.0.0/0' },
      { protocol: 'icmp', portRange: null, sourceNetwork: '192.0.2.0/24' },
      { protocol: 'all', portRange: null, sourceNetwork: '192.0.2.1/32' },
    ]);
    const short = rules.map(({ protocol, destination_port, source }) => [
      protocol,
      destination_port,
      source,
    ]);
    assert.deepEqual(short, [
      ['tcp', '22', '10.77.0.1/32'],
      ['tcp', '80-90', undefined],
      ['udp', '80-90', undefined],
      ['icmp4', undefined, '192.0.2.0/24'],
      [undefined, undefined, '192.0.2.1/32'],
    ]);
    assert.ok(rules.every(({ destination }) => destination === '10.77.0.3/32'));
    const wrong = { protocol: 'tcp', portRange: null, sourceNetwork: 'all; drop' } as const;
    assert.throws(() => toAclRules('x', '10.77.0.3', '10.77.0.1', [wrong]), {
      failure: 'impossible',
    });
  });

  test('events name their instance, and other messages are ignored', () => {
    const event = (type: string, source: string) => JSON.stringify({ type, metadata: { source } });
    assert.equal(parseInstance(event('lifecycle', '/1.0/instances/a?project=p')), 'a');
    assert.equal(parseInstance(event('lifecycle', '/1.0/instances/a/snapshots/b')), 'a');
    assert.equal(parseInstance(event('lifecycle', '/1.0/images/a')), undefined);
    assert.equal(parseInstance(event('operation', '/1.0/instances/a')), undefined);
    assert.equal(parseInstance('not json'), undefined);
  });

  test('a daemon’s permanent refusals are distinguished from temporary failures', () => {
    assert.equal(new DaemonError(400, 'Invalid devices: …').failure, 'impossible');
    assert.equal(
      new DaemonError(400, 'DaemonInstance is busy running a create operation').failure,
      'unavailable',
    );
    assert.equal(new DaemonError(500, 'RAFT cluster is unavailable').failure, 'unavailable');
    assert.equal(new DaemonError(404, 'Storage pool not found').failure, 'unavailable');
  });

  test('our certificate is signed by its own key and is valid for ten years', () => {
    const { certificate, key } = createIdentity('millrace', Date.UTC(2045, 0, 1));
    const read = new X509Certificate(certificate);
    assert.ok(read.verify(read.publicKey) && read.checkPrivateKey(createPrivateKey(key)));
    assert.equal(read.subject, 'CN=millrace');
    assert.equal(new Date(read.validTo).getUTCFullYear(), 2054);
  });
});
