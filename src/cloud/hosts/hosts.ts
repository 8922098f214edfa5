// All hosts, with a monitor for each that this server can reach. What this server sees itself takes
// precedence over the rows; for other servers' own hosts the rows are all it knows.

import type { Logger } from 'pino';
import type { Driver } from '#cloud/drivers/driver.ts';
import {
  type HeartbeatOptions,
  sharedHeartbeatMs,
  writeHeartbeat,
} from '#cloud/hosts/monitor/heartbeat.ts';
import { HostMonitor } from '#cloud/hosts/monitor/host-monitor.ts';
import type { UnreachableHosts } from '#cloud/hosts/monitor/unreachable-hosts.ts';
import type { Place } from '#cloud/placement/place.ts';
import type { HostRow } from '#db/tables/cloud-rows.ts';
import type { Database } from '#db/tables/tables.ts';
import { createKeyedMutex } from '#lib/async/keyed-mutex.ts';
import type { Clock } from '#lib/clock.ts';
import { type HostState, parseReport } from './host.ts';
import type { HostDrivers } from './host-drivers.ts';
import { explainSharedNodes, toPlaces } from './places.ts';

export interface Hosts {
  all(): readonly HostState[];
  places(): readonly Place[];
  /** False if the host is another server's own. Hosts that are silent now are included. */
  monitors(hostId: string): boolean;
  /** Undefined if the host is silent, or is another server's own. */
  driverOf(hostId: string): Driver | undefined;
  /** Ids of the hosts for which `driverOf` returns a driver. */
  reachable(): string[];
  /** Whether the host answers and the node, if one is given, is online. */
  reaches(hostId: string, node: string | null): boolean;
  /** A call to the host failed: it is probed at the next refresh. */
  suspect(hostId: string): void;
  /** Reads the rows, probes hosts that are due, and writes the consequences. Waits only for the probes of
   * the hosts in `waitFor`; for all of them by default. */
  refresh(waitFor?: readonly string[]): Promise<void>;
  close(): Promise<void>;
}

export interface HostsParts {
  drivers: HostDrivers;
  unreachable: UnreachableHosts;
  log: Logger;
  /** Called when a machine may have changed; null means any of them. */
  changed(id: string | null): void;
}

interface Monitored {
  readonly monitor: HostMonitor;
  /** What the driver was opened with. A change of it needs a new monitor. */
  readonly settings: string;
  silenceLogged: boolean;
}

/** A computer with many GPUs may need half a minute to count them. */
const probeTimeoutMs = { own: 30_000, endpoint: 10_000 };

export function createHosts(
  db: Database,
  clock: Clock,
  parts: HostsParts,
  options: HeartbeatOptions,
): Hosts {
  const { log, unreachable } = parts;
  const monitored = new Map<string, Monitored>();
  const mutex = createKeyedMutex();
  let rows: HostRow[] = [];

  const monitorOf = (hostId: string) => monitored.get(hostId)?.monitor;
  const driverOf = (hostId: string) => monitorOf(hostId)?.driver;
  const toState = (row: HostRow) => toHostState(row, monitorOf(row.id), clock.now(), options);
  const all = () => explainSharedNodes(rows.map(toState));

  function reaches(hostId: string, node: string | null): boolean {
    if (driverOf(hostId) === undefined) return false;
    const nodes = monitorOf(hostId)?.report?.nodes;
    return node === null || nodes?.find(({ name }) => name === node)?.online !== false;
  }

  /** Runs in a mutex, so that an older read never replaces a newer one. */
  const read = () =>
    mutex.run('read', async () => {
      rows = await db.selectFrom('hosts').selectAll().orderBy('created_at').orderBy('id').execute();
      await updateMonitors(monitored, rows, clock, parts);
    });

  /** Never throws: a failure of the host is what the probe is for. */
  async function probe(row: HostRow): Promise<void> {
    const entry = monitored.get(row.id);
    if (entry === undefined) return;
    await entry.monitor.probe();
    logSilence(log, row, entry);
    await writeHeartbeat(db, row, entry.monitor, { ...options, now: clock.now() }).catch((error) =>
      log.error({ err: error, host: row.name }, 'cannot write the state of a host'),
    );
  }

  async function refresh(waitFor?: readonly string[]): Promise<void> {
    await read();
    const probes = rows.map((row) => ({ id: row.id, done: probe(row) }));
    const awaited = probes.filter(({ id }) => waitFor?.includes(id) ?? true);
    await Promise.all(awaited.map(({ done }) => done));
    for (const host of all()) {
      const silentSince = monitorOf(host.row.id)?.silence?.since ?? 0;
      const silentMs = clock.now() - Math.max(host.row.seen_at ?? 0, silentSince);
      if (host.online || silentMs >= options.graceMs) {
        await markUnreachable(unreachable, host, silentSince);
      }
    }
    await unreachable.clear(reaches);
  }

  return {
    all,
    places: () => toPlaces(all()),
    monitors: (hostId) => monitored.has(hostId),
    driverOf,
    reachable: () => rows.map(({ id }) => id).filter((id) => driverOf(id) !== undefined),
    reaches,
    suspect: (hostId) => monitorOf(hostId)?.suspect(),
    refresh,
    async close() {
      await Promise.all([...monitored.values()].map(({ monitor }) => monitor.close()));
      monitored.clear();
    },
  };
}

function toHostState(
  row: HostRow,
  monitor: HostMonitor | undefined,
  now: number,
  { graceMs }: HeartbeatOptions,
): HostState {
  if (monitor !== undefined) {
    const { silence, report } = monitor;
    const seenAt = silence === null ? now : row.seen_at;
    return { row, online: silence === null, reason: silence?.reason ?? null, seenAt, report };
  }
  const isFresh = (row.seen_at ?? 0) + sharedHeartbeatMs + graceMs > now;
  const online = row.status === 'online' && isFresh;
  const reason = online ? null : (row.reason ?? 'Its own server is not running.');
  return { row, online, reason, seenAt: row.seen_at, report: parseReport(row) };
}

/** Closes monitors of hosts that were removed or changed, and opens those that are missing. */
async function updateMonitors(
  monitored: Map<string, Monitored>,
  rows: readonly HostRow[],
  clock: Clock,
  { drivers, changed }: HostsParts,
): Promise<void> {
  const wanted = new Map(rows.map((row) => [row.id, toSettings(row)]));
  for (const [id, { monitor, settings }] of monitored) {
    if (wanted.get(id) === settings) continue;
    monitored.delete(id);
    await monitor.close();
  }
  for (const row of rows) {
    if (monitored.has(row.id) || !drivers.canOpen(row)) continue;
    const monitor = new HostMonitor(clock, {
      open: () => drivers.open(row),
      changed,
      timeoutMs: row.driver === 'incus' ? probeTimeoutMs.endpoint : probeTimeoutMs.own,
      lastReport: parseReport(row),
    });
    monitored.set(row.id, { monitor, settings: toSettings(row), silenceLogged: false });
  }
}

function logSilence(log: Logger, { name }: HostRow, entry: Monitored): void {
  const { silence } = entry.monitor;
  if (entry.silenceLogged === (silence !== null)) return;
  entry.silenceLogged = silence !== null;
  if (silence === null) log.info({ host: name }, 'host answers again');
  else log.warn({ host: name, reason: silence.reason }, 'host does not answer');
}

/** Marks the instances of a silent host, or of the offline nodes of one that answers. */
async function markUnreachable(
  unreachable: UnreachableHosts,
  { row, online, reason, report }: HostState,
  silentSince: number,
): Promise<void> {
  if (!online) {
    const since = new Date(row.seen_at ?? silentSince).toISOString();
    const sentence = `Host ${row.name} has not answered since ${since}. ${reason ?? ''}`.trim();
    await unreachable.markUnhealthy(row.id, undefined, sentence);
    return;
  }
  for (const { name } of report?.nodes?.filter((node) => !node.online) ?? []) {
    await unreachable.markUnhealthy(row.id, name, `Node ${name} of host ${row.name} is offline.`);
  }
}

const toSettings = (row: HostRow) =>
  JSON.stringify([
    row.driver,
    row.url,
    row.target,
    row.fingerprint,
    row.pool,
    row.network,
    row.project,
    row.filesystems_path,
    row.extras,
  ]);
