// Hosts over the network: opens the LXD and Incus driver with the settings of a host's row.

import type { Driver } from '#cloud/drivers/driver.ts';
import { checkEndpoint } from '#cloud/drivers/incus/checks.ts';
import type { IncusOptions } from '#cloud/drivers/incus/context.ts';
import type { Identity } from '#cloud/drivers/incus/daemon/client-certificate.ts';
import { enrol } from '#cloud/drivers/incus/daemon/enrolment.ts';
import { createIncusDriver } from '#cloud/drivers/incus/incus.ts';
import type { HostRow } from '#db/tables/cloud-rows.ts';
import { type HostReport, parseExtras, parseReport } from './host.ts';
import type { EndpointDrivers } from './host-drivers.ts';

export interface EndpointParts {
  installationId: string;
  serverId: string;
  /** Called only for hosts that need a certificate. */
  certificate(): Identity;
  log(message: string): void;
}

export function createEndpoints(parts: EndpointParts): EndpointDrivers {
  const optionsOf = (host: HostRow) => toOptions(host, parts);
  return {
    open: (host) => open(optionsOf(host)),
    check: (host) => checkEndpoint({ ...defaultImageOf(host), ...optionsOf(host) }),
    async enrol({ token, url }) {
      const at = url === null ? {} : { url };
      const { serverFingerprint, ...enrolled } = await enrol(token, parts.certificate(), at);
      return { ...enrolled, fingerprint: serverFingerprint };
    },
  };
}

const lastReport = (host: HostRow): Partial<HostReport> => parseReport(host) ?? {};

/** Without a configured default image, launches that name none boot the first image of the host. */
function defaultImageOf(host: HostRow): Pick<IncusOptions, 'defaultImage'> {
  const [first] = lastReport(host).images ?? [];
  return first === undefined ? {} : { defaultImage: first.name };
}

/** Opens the driver and adds its engine and its address pool to the reports. */
async function open(options: IncusOptions): Promise<Driver> {
  const driver = await createIncusDriver(options);
  const { describe } = driver;
  const { first, last, gateway } = driver.addressRange();
  return {
    ...driver,
    describe: async () => ({
      engine: driver.engine,
      addressPool: { first, last, except: [gateway] },
      ...(await describe()),
    }),
  };
}

function toOptions(host: HostRow, parts: EndpointParts): IncusOptions {
  const extras = parseExtras(host);
  const url = host.url ?? '';
  const { filesystems_path: shared } = host;
  return {
    endpoint: {
      url,
      ...(url.startsWith('unix:') ? {} : parts.certificate()),
      ...(host.fingerprint === null ? {} : { serverFingerprint: host.fingerprint }),
      otherUrls: lastReport(host).urls ?? [],
    },
    owner: parts.installationId,
    serverId: parts.serverId,
    hostName: host.name,
    target: host.target,
    ...(host.project === null ? {} : { project: host.project }),
    ...(host.pool === null ? {} : { pool: host.pool }),
    ...(host.network === null ? {} : { network: host.network }),
    ...(extras.profiles === undefined ? {} : { profiles: extras.profiles }),
    ...(extras.addresses === undefined ? {} : { addresses: extras.addresses }),
    ...(extras.ovn_uplink === undefined ? {} : { ovnUplink: extras.ovn_uplink }),
    ...(extras.default_image === undefined ? {} : { defaultImage: extras.default_image }),
    ...(extras.mig === undefined ? {} : { gpus: { mig: extras.mig } }),
    // The shared directory is mounted at the same path on the hosts and on this server.
    ...(shared === null ? {} : { hostPaths: { onHosts: shared, here: shared } }),
    log: (message) => parts.log(`${host.name}: ${message}`),
  };
}
