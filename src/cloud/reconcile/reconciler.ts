// Makes machines what the rows say, and rows what the machines are. Any number of processes may run a
// reconciler on one database, and each may die at any point: see claims.ts and instance-work.ts.

import type { Logger } from 'pino';
import type { Audit } from '#accounts/audit/audit.ts';
import type { Hosts } from '#cloud/hosts/hosts.ts';
import type { InstanceEvents } from '#cloud/instances/instance-events.ts';
import type { InstanceFirewall } from '#cloud/resources/firewall.ts';
import type { Database } from '#db/tables/tables.ts';
import { repeat } from '#lib/async/repeat.ts';
import type { Clock } from '#lib/clock.ts';
import type { Seal } from '#lib/secrets/seal.ts';
import { createChangeHints } from './change-hints.ts';
import type { Claims } from './claims.ts';
import { createDueWork } from './due-work.ts';
import type { FilesystemWork } from './filesystem-work.ts';
import { type InstanceWorkContext, observeSettled, reconcileInstance } from './instance-work.ts';

export interface Reconciler {
  start(): void;
  /** A row became due: works on it now instead of at the next tick. */
  nudge(): void;
  /** Works on everything that is due by the clock, and resolves when it is done. */
  settle(): Promise<void>;
  /** Observes the next few settled machines. */
  observeSome(): Promise<void>;
  /** A machine may have changed by itself and is observed soon; null means any of them. */
  hint(id: string | null): void;
  /** Starts nothing new, and resolves when running work is done. */
  stop(): Promise<void>;
}

export interface ReconcilerParts {
  audit: Audit;
  claims: Claims;
  hosts: Pick<Hosts, 'driverOf' | 'reachable' | 'reaches' | 'suspect'>;
  events: InstanceEvents;
  filesystemWork: FilesystemWork;
  firewall: InstanceFirewall;
  seal: Seal;
  log: Logger;
  /** True if no other process uses the database. */
  singleServer: boolean;
}

/** How often to look for rows that other processes wrote or left; this process nudges its own reconciler. */
const tickMs = { shared: 1_000, single: 5_000 };
const observeMs = 2_000;
/** While no machine has settled, only every so many times. */
const looksPerIdleObservation = 3;

export function createReconciler(db: Database, clock: Clock, parts: ReconcilerParts): Reconciler {
  const { claims, hosts, filesystemWork, log } = parts;
  const lookMs = parts.singleServer ? tickMs.single : tickMs.shared;
  const ends: (() => void)[] = [];
  let stopped = false;
  let observing: Promise<void> | undefined;
  const settled = createSettledLooks();

  const logFailure = (error: unknown) => log.error({ err: error }, 'the reconciler failed');
  const isRunning = () => !stopped && ends.length > 0;
  const context: InstanceWorkContext = {
    ...parts,
    db,
    clock,
    nudge(inMs) {
      if (inMs === undefined) nudge();
      else if (inMs < lookMs) void clock.sleep(inMs + 1, { ref: false }).then(nudge);
    },
  };
  const work = createDueWork({
    claims,
    hosts,
    log,
    nudge,
    workers: {
      instances: (claim) => reconcileInstance(context, claim),
      filesystems: filesystemWork,
    },
  });
  const hints = createChangeHints(db, clock, { nudge, logFailure });

  function nudge(): void {
    if (isRunning()) work.start().catch(logFailure);
  }

  async function observeSome(): Promise<void> {
    await settled.observe(context);
  }

  function observeSoon(): void {
    observing ??= observeSome()
      .catch(logFailure)
      .finally(() => {
        observing = undefined;
      });
  }

  return {
    start() {
      const observe = settled.pace(observeSoon);
      ends.push(repeat(clock, lookMs, nudge), repeat(clock, observeMs, observe));
      nudge();
    },
    nudge,
    settle: work.settle,
    observeSome,
    hint(id) {
      if (!isRunning()) return;
      if (id === null) observeSoon();
      else hints.add(id);
    },
    async stop() {
      stopped = true;
      for (const end of ends) end();
      hints.stop();
      await work.stop();
      await observing;
    },
  };
}

/** Looks at settled machines, a few each time, and seldom while there are none. */
function createSettledLooks() {
  let cursor = '';
  let skips = 0;
  return {
    async observe(context: InstanceWorkContext): Promise<void> {
      const { cursor: next, observed } = await observeSettled(context, cursor);
      skips = cursor === '' && observed === 0 ? looksPerIdleObservation - 1 : 0;
      cursor = next;
    },
    pace: (look: () => void) => () => {
      if (skips > 0) skips -= 1;
      else look();
    },
  };
}
