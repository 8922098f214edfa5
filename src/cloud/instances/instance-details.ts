// What the dashboard shows about instances beyond the public API, whose strict clients reject additional
// members: timestamps, why an instance is unhealthy, its boot log and its terminal.

import type { Audit } from '#accounts/audit/audit.ts';
import { type Page, type PageOptions, readPage } from '#accounts/paging.ts';
import type { Principal } from '#accounts/principal.ts';
import {
  DriverError,
  type Measured,
  type Terminal,
  type TerminalSize,
} from '#cloud/drivers/driver.ts';
import { instanceNotFound } from '#cloud/errors.ts';
import type { Hosts } from '#cloud/hosts/hosts.ts';
import type {
  GpuFigures,
  InstanceDetail,
  InstanceStats,
  InstanceStatsResult,
  MeasuredFigure,
} from '#cloud/schema.ts';
import type { Database } from '#db/tables/tables.ts';
import type { GpuStats } from '#lib/computer/nvidia-smi.ts';
import { newestLaunch } from './instance-usage.ts';
import { toStatus } from './instance-view.ts';
import type { MachineMeasurement, MachineMeter } from './machine-meter.ts';

export interface InstanceDetails {
  /** Newest first. */
  list(accountId: string, page: PageOptions): Promise<Page<InstanceDetail>>;
  bootLog(accountId: string, id: string): Promise<string>;
  /** What the machine uses, measured within the last second. */
  stats(accountId: string, id: string): Promise<InstanceStatsResult>;
  /** Opens a login shell. Undefined if the instance is not active, or its driver has no terminals. */
  openTerminal(principal: Principal, id: string, size: TerminalSize): Promise<Terminal | undefined>;
}

export interface InstanceDetailsParts {
  readonly audit: Audit;
  readonly hosts: Pick<Hosts, 'all' | 'driverOf'>;
  readonly meter: MachineMeter;
}

const unreachable = 'The boot log cannot be read: this server cannot reach its host now.\n';

/** An engine may print secrets, so its log is for owners. */
const engineLog = 'The log of the engine is on the page of its deployment.\n';

export function createInstanceDetails(
  db: Database,
  { audit, hosts, meter }: InstanceDetailsParts,
): InstanceDetails {
  async function getRow(accountId: string, id: string) {
    const row = await db
      .selectFrom('instances')
      .select(['id', 'status', 'host_id', 'deployment_id'])
      .where('id', '=', id)
      .where('account_id', '=', accountId)
      .where('status', '!=', 'terminated')
      .executeTakeFirst();
    if (row === undefined) throw instanceNotFound();
    return row;
  }

  return {
    async list(accountId, page) {
      const { data, next } = await readPage(selectDetails(db, accountId), page, newestLaunch);
      const details = data.map(({ is_generated, action, ...row }) => ({
        ...row,
        status: toStatus({ status: row.status, action }),
        has_key_file: is_generated === 1,
        launched_at: new Date(row.launched_at).toISOString(),
        booted_at: row.booted_at === null ? null : new Date(row.booted_at).toISOString(),
      }));
      return { data: details, next };
    },
    async bootLog(accountId, id) {
      const row = await getRow(accountId, id);
      if (row.deployment_id !== null) return engineLog;
      return hosts.driverOf(row.host_id)?.bootLog(row.id) ?? unreachable;
    },
    async stats(accountId, id) {
      const row = await getRow(accountId, id);
      if (hosts.driverOf(row.host_id) === undefined)
        return { data: null, reason: explainSilence(hosts, row.host_id) };
      try {
        return { data: toStats(await meter(row.host_id, row.id)), reason: null };
      } catch (error) {
        if (error instanceof DriverError) return { data: null, reason: error.message };
        throw error;
      }
    },
    async openTerminal(principal, id, size) {
      const row = await getRow(principal.accountId, id);
      const driver = hosts.driverOf(row.host_id);
      if (row.status !== 'active' || driver?.attachTerminal === undefined) return undefined;
      // The machine has the secrets of the deployment, which only its owner may know.
      if (row.deployment_id !== null) return undefined;
      // Recorded before the shell opens, so that no access goes unrecorded.
      await audit.record(db, principal, { action: 'instance.terminal_opened', resourceId: row.id });
      return driver.attachTerminal(row.id, size);
    },
  };
}

const selectDetails = (db: Database, accountId: string) =>
  db
    .selectFrom('instances')
    .leftJoin('ssh_keys', 'ssh_keys.id', 'instances.ssh_key_id')
    .leftJoin('deployments', 'deployments.id', 'instances.deployment_id')
    .select(['instances.id', 'status', 'action', 'status_reason', 'last_error'])
    .select(['launched_at', 'booted_at', 'price_cents_per_hour', 'is_generated'])
    .select(['vcpus', 'memory_gib', 'storage_gib', 'deployments.name as deployment'])
    .where('instances.account_id', '=', accountId)
    .where('status', '!=', 'terminated');

/** Why this server has no driver for a host. */
function explainSilence(hosts: Pick<Hosts, 'all'>, hostId: string): string {
  const host = hosts.all().find(({ row }) => row.id === hostId);
  if (host?.online) {
    return `This machine runs on host ${host.row.name} of another Millrace server. Open the dashboard of that server to see live figures.`;
  }
  return `Host ${host?.row.name ?? hostId} does not answer now. ${host?.reason ?? ''}`.trim();
}

function toStats(measurement: MachineMeasurement): InstanceStats {
  const { at, cpuMs, memoryBytes, diskBytes, network, gpus } = measurement;
  return {
    at: new Date(at).toISOString(),
    cpu_ms: cpuMs,
    memory_bytes: memoryBytes,
    disk_bytes: diskBytes,
    network: toFigure(network, ({ receivedBytes, sentBytes }) => ({
      received_bytes: receivedBytes,
      sent_bytes: sentBytes,
    })),
    gpus: toFigure(gpus, toGpuFigures),
  };
}

export const toGpuFigures = (gpus: readonly GpuStats[]): GpuFigures =>
  gpus.map((gpu) => ({
    model: gpu.model,
    busy_percent: gpu.busyPercent,
    memory_bytes: gpu.memoryBytes,
    total_bytes: gpu.totalBytes,
  }));

export const toFigure = <From, To>(
  measured: Measured<From>,
  to: (value: From) => To,
): MeasuredFigure<To> => ('value' in measured ? { value: to(measured.value) } : measured);
