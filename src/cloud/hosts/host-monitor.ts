// One host as this server sees it: its driver, opened when it first answers, what it reports of itself, and
// since when it is silent. A dead host costs a try now and then, never a start or a request.

import type { Driver } from '#cloud/drivers/driver.ts';
import { withTimeout } from '#lib/async/with-timeout.ts';
import type { Clock } from '#lib/clock.ts';
import type { HostReport } from './host-drivers.ts';

export interface Link {
  /** Undefined while the host is silent, so that nothing is asked of it. */
  readonly driver: Driver | undefined;
  readonly report: HostReport | null;
  /** Null while it answers. */
  readonly silence: { readonly since: number; readonly reason: string } | null;
  /** Asks the host how it is, if that is due; one question at a time. */
  probe(): Promise<void>;
  /** Something failed there: the next probe is due now. */
  suspect(): void;
  close(): Promise<void>;
}

export interface LinkParts {
  open(): Promise<Driver>;
  /** A machine may have changed; null: any of them. */
  changed(id: string | null): void;
  /** How long it may think before it is silent. */
  patienceMs: number;
  /** What it said before this server started. */
  lastReport: HostReport | null;
}

/** Three questions or more each time; events tell what happens between. */
const refreshMs = 60_000;
const firstRetryMs = 1_000;
const lastRetryMs = 15_000;

export function createLink(clock: Clock, parts: LinkParts): Link {
  let driver: Driver | undefined;
  let unwatch: (() => void) | undefined;
  let report = parts.lastReport;
  let silence: Link['silence'] = { since: clock.now(), reason: 'It has not answered yet.' };
  let dueAt = 0;
  let failures = 0;
  let probing: Promise<void> | undefined;
  let closed = false;

  async function ask(): Promise<void> {
    try {
      const opened = driver ?? (await openOnce());
      report = rememberNodes(await withTimeout(describe(opened), parts.patienceMs), report);
      if (closed) return;
      silence = null;
      failures = 0;
      const isWhole = report.nodes?.every(({ online }) => online) ?? true;
      dueAt = clock.now() + (isWhole ? refreshMs : lastRetryMs);
      unwatch ??= opened.watch?.((id) => {
        // Whatever changed all of them may have changed the host.
        if (id === null && silence === null) dueAt = 0;
        parts.changed(id);
      });
    } catch (error) {
      const since = silence === null || failures === 0 ? clock.now() : silence.since;
      silence = { since, reason: error instanceof Error ? error.message : String(error) };
      dueAt = clock.now() + Math.min(lastRetryMs, firstRetryMs * 2 ** Math.min(failures, 10));
      failures += 1;
    }
  }

  let opening: Promise<Driver> | undefined;

  /** One that opens after its time is kept all the same, or it would stay open for nobody. */
  async function openOnce(): Promise<Driver> {
    opening ??= parts.open().then(
      async (opened) => {
        if (closed) await opened.close();
        driver = opened;
        return opened;
      },
      (error) => {
        opening = undefined;
        throw error;
      },
    );
    return withTimeout(opening, parts.patienceMs);
  }

  return {
    get driver() {
      return silence === null ? driver : undefined;
    },
    get report() {
      return report;
    },
    get silence() {
      return silence;
    },
    async probe() {
      if (closed || (probing === undefined && clock.now() < dueAt)) return;
      probing ??= ask().finally(() => {
        probing = undefined;
      });
      await probing;
    },
    suspect() {
      if (silence === null) dueAt = 0;
    },
    async close() {
      closed = true;
      unwatch?.();
      await driver?.close();
    },
  };
}

async function describe(driver: Driver): Promise<HostReport> {
  const report = await driver.describe();
  return { ...report, images: (await driver.images?.()) ?? null };
}

/** A node that is offline says nothing of its size: what it was still is, and machines hold parts of it. */
function rememberNodes(report: HostReport, before: HostReport | null): HostReport {
  const { nodes } = report;
  if (nodes === undefined) return report;
  const known = new Map(before?.nodes?.map((node) => [node.name, node]));
  return {
    ...report,
    nodes: nodes.map((node) =>
      node.online ? node : { ...node, ...known.get(node.name), online: false },
    ),
  };
}
