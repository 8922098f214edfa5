// BOUNDARY. How this server reaches hosts. Its own host's driver is already open; other hosts are endpoints
// over the network, and the code for those is loaded on first use. Another server's own host can't be opened
// from here: that server works on its machines.

import { type Driver, DriverError } from '#cloud/drivers/driver.ts';
import type { HostRow } from '#db/tables/cloud-rows.ts';

export interface HostDrivers {
  /** False if only another server can open the host. */
  canOpen(host: HostRow): boolean;
  /** Throws if the host does not answer now; the caller retries later. */
  open(host: HostRow): Promise<Driver>;
  /** Makes a host trust this server, by a token that works once. Throws DriverError. */
  enrol(enrolment: Enrolment): Promise<HostEndpoint>;
  /** Checks everything a host needs, one by one. Never throws because a host is broken. */
  check(host: HostRow): Promise<HostCheck[]>;
}

export type EndpointDrivers = Omit<HostDrivers, 'canOpen'>;

export interface Enrolment {
  /** The token that `lxc config trust add` or `incus config trust add` prints. */
  readonly token: string;
  /** Which of the token's addresses to use; null tries each. */
  readonly url: string | null;
}

export interface HostEndpoint {
  readonly url: string;
  readonly fingerprint: string | null;
}

export interface HostCheck {
  readonly name: 'reachability' | 'isolation' | 'trust' | 'storage' | 'network' | 'images' | 'gpus';
  readonly ok: boolean;
  /** What was found, or what is wrong and how to fix it. */
  readonly message: string;
}

export interface OwnDriver {
  readonly hostId: string;
  readonly driver: Driver;
}

export function createHostDrivers(
  own: OwnDriver | null,
  loadEndpoints: () => Promise<EndpointDrivers>,
): HostDrivers {
  const findOwn = ({ id }: HostRow) => (id === own?.hostId ? own.driver : undefined);
  return {
    canOpen: (host) => host.driver === 'incus' || findOwn(host) !== undefined,
    open: async (host) => findOwn(host) ?? (await loadEndpoints()).open(host),
    enrol: async (enrolment) => (await loadEndpoints()).enrol(enrolment),
    async check(host) {
      const driver = findOwn(host);
      return driver === undefined ? (await loadEndpoints()).check(host) : checkOwn(driver);
    },
  };
}

/** This server's own host needs no trust, no network and no images. */
async function checkOwn(driver: Driver): Promise<HostCheck[]> {
  try {
    const {
      isolation,
      advice = [],
      network,
      networkObstacle,
      storageGib,
      gpus,
    } = await driver.describe();
    return [
      { name: 'reachability', ok: true, message: "This server's own host." },
      { name: 'isolation', ok: true, message: [isolation, ...advice].join(' ') },
      { name: 'storage', ok: storageGib > 0, message: `${storageGib} GiB.` },
      {
        name: 'network',
        ok: networkObstacle === undefined,
        message: networkObstacle ?? (network || 'No machines, no network.'),
      },
      { name: 'gpus', ok: true, message: toGpuSummary(gpus) },
    ];
  } catch (error) {
    const message = error instanceof DriverError ? error.message : String(error);
    return [{ name: 'reachability', ok: false, message }];
  }
}

function toGpuSummary(gpus: readonly { readonly model: string }[]): string {
  const counts = Map.groupBy(gpus, ({ model }) => model);
  const words = [...counts].map(([model, same]) => `${same.length} x ${model}`);
  return words.length === 0 ? 'None.' : `${words.join(', ')}.`;
}
