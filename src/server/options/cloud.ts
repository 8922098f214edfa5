// Converts the `cloud` section of the configuration into options of the cloud.

import { existsSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { keepOrphansFile } from '#backup/state-files.ts';
import type { CloudOptions } from '#cloud/cloud.ts';
import type { HostState } from '#cloud/hosts/host.ts';
import { readArchitecture, readSystemName } from '#cloud/placement/host-system.ts';
import type { Config } from '#config/schema.ts';
import { readFreeBytes } from '#lib/computer/disk-space.ts';
import { isSingleServer } from './single-server.ts';

export function toCloudOptions(config: Config, ownId: string | null): CloudOptions {
  const { cloud, data_dir } = config;
  const { driver, region } = cloud;
  return {
    ownHost:
      ownId === null || driver === 'none'
        ? null
        : { id: ownId, name: cloud.host_name ?? hostname().toLowerCase(), region, driver },
    hosts: cloud.hosts,
    hostGraceMs: cloud.host_grace_seconds * 1000,
    async ownDisk() {
      if (ownId === null) return null;
      return {
        hostId: ownId,
        freeGib: (await readFreeBytes(data_dir)) / 2 ** 30,
        reserveGib: cloud.disk_reserve_gib,
        promises: driver === 'sandbox',
        filesystemGib: driver === 'sandbox' ? (cloud.filesystem_gib ?? 1) : 0,
      };
    },
    emulate: cloud.emulate,
    emulatedInstances: cloud.emulated_instances,
    prices: cloud.prices,
    vcpuOvercommit: cloud.vcpu_overcommit,
    instancesPerAccount: cloud.instances_per_account,
    filesystemsPerAccount: cloud.filesystems_per_account,
    rulesetsPerAccount: cloud.firewall_rulesets_per_account,
    sshKeysPerAccount: cloud.ssh_keys_per_account,
    leaseMs: 10_000,
    singleServer: isSingleServer(config),
    keepsOrphans: () => existsSync(join(data_dir, keepOrphansFile)),
    system: readSystemName(),
    architecture: readArchitecture(),
  };
}

export const toIsolation = ({ cloud }: Config) => ({
  isolation: cloud.isolation,
  nested: cloud.nested_namespaces,
});

/** What the driver of this host needs to know. */
export const toDriverOptions = (config: Config) => ({
  ...toIsolation(config),
  dataDir: config.data_dir,
  shareOpt: config.cloud.share_opt,
  reservedMemoryGib: config.cloud.reserved_memory_gib,
  diskReserveGib: config.cloud.disk_reserve_gib,
  filesystemGib: config.cloud.filesystem_gib,
  machinesDiskGib: config.cloud.machines_disk_gib,
});

export function toCloudLimits({ cloud }: Config) {
  if (!cloud.rate_limit) return { requests: null, launches: null };
  const toRate = (intervalMs: number, burst: number) => ({
    intervalMs,
    burst: burst + jitterMs / intervalMs,
  });
  return {
    requests: toRate(1000 / cloud.requests_per_second, cloud.request_burst),
    launches: toRate(cloud.launch_interval_seconds * 1000, cloud.launch_burst),
  };
}

/**
 * A request may come this much too early, because a client that keeps the pace exactly is sometimes delayed on the way
 * and then seems to hurry. The rate over a longer time stays the same.
 */
const jitterMs = 500;

/** Says what may use this host's GPUs. Empty if it has none. */
export function describeGpus(
  { inference }: Config,
  hosts: readonly HostState[],
  ownId: string | null,
): string {
  const gpus = hosts.find(({ row }) => row.id === ownId)?.report?.gpus ?? [];
  if (gpus.length === 0) return '';
  const models = [...new Set(gpus.map(({ model }) => model))].join(', ');
  const users = inference.gpu
    ? 'Models on this computer take one while they are loaded, machines get the others.'
    : 'For machines only (inference.gpu is false).';
  return `${gpus.length} × ${models}. ${users}`;
}

/** Why machines of this host have no internet access, and what to do. Empty if they have it. */
export const describeNetworkObstacle = (hosts: readonly HostState[], ownId: string | null) =>
  hosts.find(({ row }) => row.id === ownId)?.report?.networkObstacle ?? '';

/** How machines are kept apart here, and how many other hosts there are. */
export function describeMachines(hosts: readonly HostState[], ownId: string | null): string {
  const report = hosts.find(({ row }) => row.id === ownId)?.report;
  const here = report ? `${report.isolation} ${report.network}`.trim() : 'None on this host.';
  const others = hosts.filter(({ row }) => row.id !== ownId).length;
  return others === 0 ? here : `${here} ${others} more host${others === 1 ? '' : 's'}.`;
}
