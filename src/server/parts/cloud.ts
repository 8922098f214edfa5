// The cloud part: this host's driver, the drivers of hosts over the network, and the cloud on top of them.

import { createCloud } from '#cloud/cloud.ts';
import { createDriver } from '#cloud/drivers/index.ts';
import { createHostDrivers } from '#cloud/hosts/host-drivers.ts';
import { readHostId } from '#cloud/hosts/own-host.ts';
import { toCloudOptions, toDriverOptions } from '#server/options/cloud.ts';
import type { Core } from './core.ts';

export type OpenedCloud = Awaited<ReturnType<typeof openCloud>>;

export async function openCloud(core: Core) {
  const { config, clock, log, db, audit, seal } = core;
  const own = await openOwnHost(core);
  const drivers = createHostDrivers(own, () => openEndpoints(core));
  const ownHostId = own?.hostId ?? null;
  const options = toCloudOptions(config, ownHostId);
  const cloud = await createCloud(db, clock, { audit, drivers, seal, log }, options);
  return { ownHostId, ...cloud };
}

async function openOwnHost({ config, log }: Core) {
  const { driver: name } = config.cloud;
  if (name === 'none') return null;
  const driver = await createDriver(name, {
    ...toDriverOptions(config),
    log: (message) => log.info({ driver: name }, message),
  });
  return { hostId: readHostId(config.data_dir), driver };
}

/** Loaded only when a host over the network is first needed. */
async function openEndpoints({ config, clock, log, db }: Core) {
  const [{ createEndpoints }, { loadClientCertificate }] = await Promise.all([
    import('#cloud/hosts/endpoints.ts'),
    import('#cloud/hosts/client-certificate.ts'),
  ]);
  const { id } = await db.selectFrom('installation').selectAll().executeTakeFirstOrThrow();
  const files = { certificate: config.cloud.client_certificate, key: config.cloud.client_key };
  return createEndpoints({
    installationId: id,
    serverId: readHostId(config.data_dir),
    certificate: () => loadClientCertificate(config.data_dir, files, clock.now()),
    log: (message) => log.info({ driver: 'incus' }, message),
  });
}
