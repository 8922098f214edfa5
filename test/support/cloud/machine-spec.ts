// A small machine for the tests of drivers: an id and an account of its own, one processor, and ssh open to all.

import { randomBytes } from 'node:crypto';
import type { InboundRule, MachineSpec } from '#cloud/drivers/driver.ts';

export const sshOpen: InboundRule = {
  protocol: 'tcp',
  portRange: [22, 22],
  sourceNetwork: '0.0.0.0/0',
};

export function newMachineSpec(publicKey: string, changes: Partial<MachineSpec> = {}): MachineSpec {
  const id = randomBytes(16).toString('hex');
  return {
    id,
    account: id,
    node: null,
    hostname: `i-${id.slice(0, 8)}`,
    ip: null,
    vcpus: 1,
    memoryGib: 1,
    storageGib: 8,
    gpus: [],
    authorizedKeys: [publicKey],
    filesystems: [],
    userData: null,
    image: 'default',
    firewall: [sshOpen],
    ...changes,
  };
}
