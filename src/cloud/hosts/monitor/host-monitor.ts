// Monitors one host: opens its driver when it first answers, reads its reports, and tracks since when it has
// been silent. A dead host costs a retry now and then; it never delays a start or a request.

import type { Driver } from '#cloud/drivers/driver.ts';
import type { HostReport } from '#cloud/hosts/host.ts';
import { withTimeout } from '#lib/async/with-timeout.ts';
import type { Clock } from '#lib/clock.ts';

export interface HostMonitorParts {
  open(): Promise<Driver>;
  /** Called when a machine may have changed; null means any of them. */
  changed(id: string | null): void;
  /** How long the host may take to answer before it counts as silent. */
  timeoutMs: number;
  /** What the host reported before this server started. */
  lastReport: HostReport | null;
}

/** Null while the host answers. */
export type HostSilence = { readonly since: number; readonly reason: string } | null;

/** A probe costs three calls or more; events report what happens in between. */
const refreshMs = 60_000;
const minRetryMs = 1_000;
const maxRetryMs = 15_000;

export class HostMonitor {
  readonly #clock: Clock;
  readonly #parts: HostMonitorParts;
  #driver: Driver | undefined;
  #opening: Promise<Driver> | undefined;
  #probing: Promise<void> | undefined;
  #unwatch: (() => void) | undefined;
  #report: HostReport | null;
  #silence: HostSilence;
  #dueAt = 0;
  #failures = 0;
  #closed = false;

  constructor(clock: Clock, parts: HostMonitorParts) {
    this.#clock = clock;
    this.#parts = parts;
    this.#report = parts.lastReport;
    this.#silence = { since: clock.now(), reason: 'It has not answered yet.' };
  }

  /** Undefined while the host is silent, so that no call is made to it. */
  get driver(): Driver | undefined {
    return this.#silence === null ? this.#driver : undefined;
  }

  get report(): HostReport | null {
    return this.#report;
  }

  get silence(): HostSilence {
    return this.#silence;
  }

  /** Asks the host for a report if one is due. Concurrent calls share one probe. */
  async probe(): Promise<void> {
    const isDue = this.#probing !== undefined || this.#clock.now() >= this.#dueAt;
    if (this.#closed || !isDue) return;
    this.#probing ??= this.#probe().finally(() => {
      this.#probing = undefined;
    });
    await this.#probing;
  }

  /** A call to the host failed: makes the next probe due now. */
  suspect(): void {
    if (this.#silence === null) this.#dueAt = 0;
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#unwatch?.();
    await this.#driver?.close();
  }

  async #probe(): Promise<void> {
    try {
      const driver = this.#driver ?? (await this.#open());
      const report = await withTimeout(readReport(driver), this.#parts.timeoutMs);
      this.#report = keepNodeSizes(report, this.#report);
      if (!this.#closed) this.#answered(driver, this.#report);
    } catch (error) {
      this.#failed(error instanceof Error ? error.message : String(error));
    }
  }

  #answered(driver: Driver, { nodes }: HostReport): void {
    this.#silence = null;
    this.#failures = 0;
    const allOnline = nodes?.every(({ online }) => online) ?? true;
    this.#dueAt = this.#clock.now() + (allOnline ? refreshMs : maxRetryMs);
    this.#unwatch ??= driver.watch?.((id) => {
      // An event that concerns all machines may concern the host itself.
      if (id === null) this.suspect();
      this.#parts.changed(id);
    });
  }

  #failed(reason: string): void {
    const now = this.#clock.now();
    const since = this.#silence === null || this.#failures === 0 ? now : this.#silence.since;
    this.#silence = { since, reason };
    this.#dueAt = now + Math.min(maxRetryMs, minRetryMs * 2 ** Math.min(this.#failures, 10));
    this.#failures += 1;
  }

  /** A driver that opens after the timeout is kept for the next probe; otherwise it would leak. */
  #open(): Promise<Driver> {
    this.#opening ??= this.#parts.open().then(
      async (driver) => {
        if (this.#closed) await driver.close();
        this.#driver = driver;
        return driver;
      },
      (error) => {
        this.#opening = undefined;
        throw error;
      },
    );
    return withTimeout(this.#opening, this.#parts.timeoutMs);
  }
}

async function readReport(driver: Driver): Promise<HostReport> {
  const report = await driver.describe();
  return { ...report, images: (await driver.images?.()) ?? null };
}

/** An offline node does not report its size. The last known one still holds: machines have parts of it. */
function keepNodeSizes(report: HostReport, before: HostReport | null): HostReport {
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
