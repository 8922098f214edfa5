// Every host there is, with a link to each that this server can reach. What this server sees itself counts
// before what others wrote down; of other servers' own hosts it only knows the latter.

import type { Logger } from 'pino';
import type { Driver } from '#cloud/drivers/driver.ts';
import type { Place } from '#cloud/placement/placement.ts';
import type { HostRow } from '#db/cloud-rows.ts';
import type { Database } from '#db/tables.ts';
import type { Clock } from '#lib/clock.ts';
import type { HostDrivers, HostReport } from './host-drivers.ts';
import { createLink, type Link } from './host-monitor.ts';
import { explainDoubles, toPlaces } from './places.ts';
import type { Silence } from './unreachable-hosts.ts';

export interface Host {
  readonly row: HostRow;
  readonly online: boolean;
  /** Why it is not online. */
  readonly reason: string | null;
  readonly seenAt: number | null;
  readonly report: HostReport | null;
}

export interface Hosts {
  all(): readonly Host[];
  places(): readonly Place[];
  /** Grows whenever places may have changed. */
  revision(): number;
  /** Undefined when the host is silent, or another server's own. */
  driverOf(hostId: string): Driver | undefined;
  /** Hosts that `driverOf` has a driver for. */
  reachable(): string[];
  reaches(hostId: string, node: string | null): boolean;
  /** Something failed there: it is asked at the next look. */
  suspect(hostId: string): void;
  /** Reads the rows, asks hosts how they are, and writes down what that means. `first` waits for the hosts
   * with these ids only. */
  look(first?: readonly string[]): Promise<void>;
  close(): Promise<void>;
}

export interface HostsParts {
  drivers: HostDrivers;
  silence: Silence;
  log: Logger;
  changed(id: string | null): void;
}

export interface HostsOptions {
  /** How long a host may be silent before its instances are unhealthy. */
  graceMs: number;
  /** No other server uses this database, so nobody reads when a host was last seen. */
  singleServer: boolean;
}

/** A computer with many GPUs may need half a minute to count them. */
const patienceMs = { own: 30_000, endpoint: 10_000 };
const heartbeatMs = { singleServer: 30_000, several: 5_000 };

export function createHosts(
  db: Database,
  clock: Clock,
  parts: HostsParts,
  options: HostsOptions,
): Hosts {
  const links = new Map<string, { link: Link; settings: string }>();
  const beatMs = options.singleServer ? heartbeatMs.singleServer : heartbeatMs.several;
  /** Whose silence was logged. */
  const complained = new Set<string>();
  let rows: HostRow[] = [];
  let revision = 0;
  let reading: Promise<void> = Promise.resolve();

  function toHost(row: HostRow): Host {
    const link = links.get(row.id)?.link;
    if (link !== undefined) {
      const { silence, report } = link;
      const seenAt = silence === null ? clock.now() : row.seen_at;
      return { row, online: silence === null, reason: silence?.reason ?? null, seenAt, report };
    }
    const fresh = (row.seen_at ?? 0) + heartbeatMs.several + options.graceMs > clock.now();
    const online = row.status === 'online' && fresh;
    const reason = online ? null : (row.reason ?? 'Its own server does not run.');
    return { row, online, reason, seenAt: row.seen_at, report: parseReport(row) };
  }

  const all = () => explainDoubles(rows.map(toHost));
  const driverOf = (hostId: string) => links.get(hostId)?.link.driver;

  function reaches(hostId: string, node: string | null): boolean {
    const link = links.get(hostId)?.link;
    if (link?.driver === undefined) return false;
    const nodes = link.report?.nodes;
    return node === null || nodes?.find(({ name }) => name === node)?.online !== false;
  }

  /** One at a time, so that an older reading never replaces a newer one. */
  function read(): Promise<void> {
    const readNow = async () => {
      rows = await db.selectFrom('hosts').selectAll().orderBy('created_at').orderBy('id').execute();
      await tieLinks();
      revision += 1;
    };
    reading = reading.then(readNow, readNow);
    return reading;
  }

  async function look(first?: readonly string[]): Promise<void> {
    await read();
    const awaited = rows.filter(({ id }) => first?.includes(id) ?? true);
    const probes = rows.map((row) => ({ row, done: probe(row) }));
    await Promise.all(probes.filter(({ row }) => awaited.includes(row)).map(({ done }) => done));
    for (const host of all()) await noteSilence(host);
    await parts.silence.lift(reaches);
  }

  async function tieLinks(): Promise<void> {
    const wanted = new Map(rows.map((row) => [row.id, toSettings(row)]));
    for (const [id, { link, settings }] of links) {
      if (wanted.get(id) === settings) continue;
      links.delete(id);
      complained.delete(id);
      await link.close();
    }
    for (const row of rows) {
      if (links.has(row.id) || !parts.drivers.canOpen(row)) continue;
      const link = createLink(clock, {
        open: () => parts.drivers.open(row),
        changed: parts.changed,
        patienceMs: row.driver === 'incus' ? patienceMs.endpoint : patienceMs.own,
        lastReport: parseReport(row),
      });
      links.set(row.id, { link, settings: toSettings(row) });
    }
  }

  /** Never throws: what goes wrong with a host is what it is asked for. */
  async function probe(row: HostRow): Promise<void> {
    const link = links.get(row.id)?.link;
    if (link === undefined) return;
    await link.probe();
    noteChange(row, link.silence);
    revision += 1;
    await write(row, link).catch((error) =>
      parts.log.error({ err: error, host: row.name }, 'a host could not be written down'),
    );
  }

  function noteChange({ id, name }: HostRow, silence: Link['silence']): void {
    if (silence === null) {
      if (complained.delete(id)) parts.log.info({ host: name }, 'host answers again');
    } else if (!complained.has(id)) {
      complained.add(id);
      parts.log.warn({ host: name, reason: silence.reason }, 'host does not answer');
    }
  }

  async function write(row: HostRow, { silence, report }: Link): Promise<void> {
    const now = clock.now();
    const seenAgo = now - (row.seen_at ?? 0);
    // Another server may see what this one doesn't.
    if (silence !== null && seenAgo < options.graceMs) return;
    const next = {
      status: silence === null ? ('online' as const) : ('offline' as const),
      reason: silence?.reason ?? null,
      report: report === null ? null : JSON.stringify(report),
    };
    const same =
      next.status === row.status && next.reason === row.reason && next.report === row.report;
    if (same && (silence !== null || seenAgo < beatMs)) return;
    const seen = silence === null ? { seen_at: now } : {};
    await db
      .updateTable('hosts')
      .set({ ...next, ...seen })
      .where('id', '=', row.id)
      .execute();
    Object.assign(row, next, seen);
  }

  async function noteSilence({ row, online, reason, report }: Host): Promise<void> {
    const { silence } = links.get(row.id)?.link ?? { silence: null };
    const since = Math.max(row.seen_at ?? 0, silence?.since ?? 0);
    if (!online) {
      if (clock.now() - since < options.graceMs) return;
      const when = new Date(row.seen_at ?? since).toISOString();
      const sentence = `Host ${row.name} does not answer since ${when}. ${reason ?? ''}`.trim();
      return parts.silence.fall(row.id, undefined, sentence);
    }
    for (const node of report?.nodes ?? []) {
      if (node.online) continue;
      await parts.silence.fall(
        row.id,
        node.name,
        `Node ${node.name} of host ${row.name} is offline.`,
      );
    }
  }

  return {
    all,
    places: () => toPlaces(all()),
    revision: () => revision,
    driverOf,
    reachable: () => rows.map(({ id }) => id).filter((id) => driverOf(id) !== undefined),
    reaches,
    suspect: (hostId) => links.get(hostId)?.link.suspect(),
    look,
    async close() {
      await Promise.all([...links.values()].map(({ link }) => link.close()));
      links.clear();
    },
  };
}

/** What a link was opened by. */
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

const parseReport = ({ report }: HostRow): HostReport | null =>
  report === null ? null : JSON.parse(report);
