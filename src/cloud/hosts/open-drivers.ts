// How a server opens hosts: its own is there already, the others are endpoints over the network, whose
// code is only loaded by those who have one.

import { type Driver, DriverError } from '#cloud/drivers/driver.ts';
import type { HostRow } from '#db/cloud-rows.ts';
import type { HostCheck, HostDrivers } from './host-drivers.ts';

export interface OwnDriver {
  readonly hostId: string;
  readonly driver: Driver;
}

export function createHostDrivers(
  own: OwnDriver | null,
  loadEndpoints: () => Promise<Pick<HostDrivers, 'open' | 'enrol' | 'check'>>,
): HostDrivers {
  const isOwn = ({ id }: HostRow) => id === own?.hostId;
  return {
    canOpen: (host) => host.driver === 'incus' || isOwn(host),
    async open(host) {
      if (own !== null && isOwn(host)) return own.driver;
      return (await loadEndpoints()).open(host);
    },
    enrol: async (ask) => (await loadEndpoints()).enrol(ask),
    async check(host) {
      if (own !== null && isOwn(host)) return checkOwn(own.driver);
      return (await loadEndpoints()).check(host);
    },
  };
}

/** It needs no trust, no network of its own and no images. */
async function checkOwn(driver: Driver): Promise<HostCheck[]> {
  try {
    const { isolation, network, storageGib, gpus } = await driver.describe();
    return [
      { name: 'reachability', ok: true, message: `This server's own host. ${isolation}` },
      { name: 'storage', ok: storageGib > 0, message: `${storageGib} GiB.` },
      { name: 'network', ok: true, message: network || 'No machines, no network.' },
      { name: 'gpus', ok: true, message: describeGpus(gpus) },
    ];
  } catch (error) {
    const message = error instanceof DriverError ? error.message : String(error);
    return [{ name: 'reachability', ok: false, message }];
  }
}

export function describeGpus(gpus: readonly { readonly model: string }[]): string {
  const counts = Map.groupBy(gpus, ({ model }) => model);
  const words = [...counts].map(([model, same]) => `${same.length} x ${model}`);
  return words.length === 0 ? 'None.' : `${words.join(', ')}.`;
}
