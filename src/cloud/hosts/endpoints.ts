// Hosts over the network: what a row says becomes the options of the driver for LXD and Incus.

import type { Driver } from '#cloud/drivers/driver.ts';
import { checkEndpoint } from '#cloud/drivers/incus/checks.ts';
import type { Identity } from '#cloud/drivers/incus/client-certificate.ts';
import type { IncusOptions } from '#cloud/drivers/incus/context.ts';
import { enrol } from '#cloud/drivers/incus/enrolment.ts';
import { createIncusDriver } from '#cloud/drivers/incus/incus.ts';
import type { HostRow } from '#db/cloud-rows.ts';
import type { HostDrivers, HostExtras, HostReport } from './host-drivers.ts';

export interface EndpointParts {
  installationId: string;
  /** Made when it is first needed. */
  certificate(): Identity;
  log(message: string): void;
}

export function createEndpoints(
  parts: EndpointParts,
): Pick<HostDrivers, 'open' | 'enrol' | 'check'> {
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

const lastReport = ({ report }: HostRow) => JSON.parse(report ?? '{}') as Partial<HostReport>;

/** Any image will do where nobody said which: launches that name none then boot the first. */
function defaultImageOf(host: HostRow): Pick<IncusOptions, 'defaultImage'> {
  const [first] = lastReport(host).images ?? [];
  return first === undefined ? {} : { defaultImage: first.name };
}

/** The driver, which also says what addresses it takes and what engine it is. */
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
  const extras = JSON.parse(host.extras) as HostExtras;
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
    target: host.target,
    ...(host.project === null ? {} : { project: host.project }),
    ...(host.pool === null ? {} : { pool: host.pool }),
    ...(host.network === null ? {} : { network: host.network }),
    ...(extras.profiles === undefined ? {} : { profiles: extras.profiles }),
    ...(extras.addresses === undefined ? {} : { addresses: extras.addresses }),
    ...(extras.default_image === undefined ? {} : { defaultImage: extras.default_image }),
    ...(extras.mig === undefined ? {} : { gpus: { mig: extras.mig } }),
    // Mounted at the same place on the hosts and here.
    ...(shared === null ? {} : { hostPaths: { onHosts: shared, here: shared } }),
    log: (message) => parts.log(`${host.name}: ${message}`),
  };
}
