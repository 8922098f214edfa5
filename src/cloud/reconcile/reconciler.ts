// Makes machines what the rows say, and rows what the machines are. Load (a claim), act (no transaction
// open), apply (compare-and-set): so any number of processes may run this, and each may die at any point.

import type { Logger } from 'pino';
import { DriverError } from '#cloud/drivers/driver.ts';
import type { Hosts } from '#cloud/hosts/hosts.ts';
import type { InstanceEvents } from '#cloud/instances/instance-events.ts';
import type { Firewall } from '#cloud/resources/firewall.ts';
import type { InstanceRow } from '#db/cloud-rows.ts';
import type { Database } from '#db/tables.ts';
import { withTimeout } from '#lib/async/with-timeout.ts';
import type { Clock } from '#lib/clock.ts';
import { createHints } from './change-hints.ts';
import type { Claim, Claims, WorkTable } from './claims.ts';
import type { FilesystemWork } from './filesystem-work.ts';
import { fail, type Outcome, observe, step, toSettled } from './instance-steps.ts';
import { loadSpec } from './machine-specs.ts';

export interface Reconciler {
  start(): void;
  /** Something became due: look now instead of at the next tick. */
  nudge(): void;
  /** Works off everything that is due by the clock. */
  settle(): Promise<void>;
  /** Looks at the next few settled machines: the same work however many there are. */
  observeSome(): Promise<void>;
  /** A machine may have changed by itself: it is looked at soon. Null: any of them. */
  hint(id: string | null): void;
  /** Takes nothing new, and resolves when what runs is done. */
  stop(): Promise<void>;
}

export interface ReconcilerParts {
  claims: Claims;
  hosts: Pick<Hosts, 'driverOf' | 'reachable' | 'reaches' | 'suspect'>;
  events: InstanceEvents;
  filesystemWork: FilesystemWork;
  firewall: Firewall;
  log: Logger;
}

/** For what other processes left or wrote; our own work is looked at when it is due. */
const tickMs = 1_000;
const observeMs = 2_000;
const maxInFlight = 64;
const takenAtOnce = 32;
/** A host with so much under way gets nothing more, so that one that hangs leaves room for the others. */
const busyHost = 24;
const observedAtOnce = 32;
/** All of a round wait for the slowest. */
const observePatienceMs = 10_000;
/** How long a row waits whose node is offline while the rest of its host answers. */
const offlineNodeMs = 5_000;

export function createReconciler(db: Database, clock: Clock, parts: ReconcilerParts): Reconciler {
  const { claims, hosts, events, firewall, log } = parts;
  const inFlight = new Set<Promise<void>>();
  /** How much of it is on which host. */
  const underWay = new Map<string, number>();
  const timers: NodeJS.Timeout[] = [];
  let looking: Promise<number> | undefined;
  let lookAgain = false;
  let observing: Promise<void> | undefined;
  let stopped = false;
  let cursor = '';

  /** One look at a time; a nudge during it makes another. */
  async function look(): Promise<number> {
    if (looking !== undefined) {
      lookAgain = true;
      return looking;
    }
    looking = (async () => {
      let started = 0;
      do {
        lookAgain = false;
        started += await takeFrom('instances', reconcileInstance);
        started += await takeFrom('filesystems', parts.filesystemWork);
      } while (lookAgain && !stopped);
      return started;
    })();
    return looking.finally(() => {
      looking = undefined;
    });
  }

  async function takeFrom(table: WorkTable, work: (claim: Claim) => Promise<void>) {
    const room = Math.min(takenAtOnce, maxInFlight - inFlight.size);
    if (room <= 0 || stopped) return 0;
    const free = hosts.reachable().filter((host) => (underWay.get(host) ?? 0) < busyHost);
    const taken = await claims.take(table, room, free);
    for (const claim of taken) {
      const host = claim.hostId ?? '';
      underWay.set(host, (underWay.get(host) ?? 0) + 1);
      const running = claims
        .holding(table, claim, () => work(claim))
        .catch((error) => log.error({ err: error, table, id: claim.id }, 'reconciling failed'))
        .finally(() => {
          inFlight.delete(running);
          const left = (underWay.get(host) ?? 1) - 1;
          if (left > 0) underWay.set(host, left);
          else underWay.delete(host);
          if (inFlight.size === maxInFlight - 1 || left === busyHost - 1) nudge();
        });
      inFlight.add(running);
    }
    if (taken.length === takenAtOnce) lookAgain = true;
    return taken.length;
  }

  async function reconcileInstance(claim: Claim): Promise<void> {
    const row = await db
      .selectFrom('instances')
      .selectAll()
      .where('id', '=', claim.id)
      .where('claim', '=', claim.token)
      .executeTakeFirst();
    if (row === undefined) return;
    const driver = hosts.driverOf(row.host_id);
    if (driver === undefined || !hosts.reaches(row.host_id, row.node)) {
      await apply(row, { changes: {}, dueInMs: offlineNodeMs }, claim.token);
      return;
    }
    const spec = await loadSpec(db, firewall, row);
    const outcome = await step(row, driver, spec, clock.now()).catch((error) => {
      noteFailure(row, error);
      log.warn(
        { err: error, instance: row.id, attempt: row.attempts + 1 },
        'a machine step failed',
      );
      return fail(row, error, clock.now());
    });
    // Somebody asked for something newer meanwhile: the row is still due, and the claim must go.
    if (await apply(row, outcome, claim.token)) return;
    await claims.release('instances', claim);
    nudge();
  }

  function noteFailure({ host_id }: InstanceRow, error: unknown) {
    const lasting = error instanceof DriverError && error.failure === 'impossible';
    if (!lasting) hosts.suspect(host_id);
  }

  async function apply(row: InstanceRow, outcome: Outcome, token: string | null) {
    const { changes, dueInMs } = outcome;
    const applied = await db.transaction().execute(async (tx) => {
      const { numUpdatedRows } = await tx
        .updateTable('instances')
        .set({
          ...changes,
          due_at: dueInMs === null ? null : clock.now() + dueInMs,
          claim: null,
          claimed_until: 0,
        })
        .where('id', '=', row.id)
        .where('version', '=', row.version)
        .where('status', '=', row.status)
        .where('claim', token === null ? 'is' : '=', token)
        .executeTakeFirstOrThrow();
      if (numUpdatedRows === 0n) return false;
      if (changes.status === 'terminated') {
        await tx.deleteFrom('instance_gpus').where('instance_id', '=', row.id).execute();
      }
      return true;
    });
    if (applied) announce(row, changes);
    if (applied && dueInMs !== null && dueInMs < tickMs) setTimeout(nudge, dueInMs + 1).unref();
    return applied;
  }

  function announce(row: InstanceRow, changes: Partial<InstanceRow>) {
    const { status = row.status, ip = row.ip, action = row.action } = changes;
    if (status === row.status && ip === row.ip && action === row.action) return;
    if (status !== row.status) {
      const { status_reason: reason } = changes;
      log.info({ instance: row.id, from: row.status, to: status, reason }, 'instance changed');
    }
    events.publish({ accountId: row.account_id, instanceId: row.id, status });
  }

  async function observeSome(): Promise<void> {
    const reachable = hosts.reachable();
    if (reachable.length === 0) return;
    const rows = await db
      .selectFrom('instances')
      .selectAll()
      .where('status', '!=', 'terminated')
      .where('due_at', 'is', null)
      .where('host_id', 'in', reachable)
      .where('id', '>', cursor)
      .orderBy('id')
      .limit(observedAtOnce)
      .execute();
    cursor = rows.length < observedAtOnce ? '' : (rows.at(-1)?.id ?? '');
    await Promise.all(
      rows.map((row) =>
        observeOne(row).catch((error) => {
          noteFailure(row, error);
          log.warn({ err: error, instance: row.id }, 'a machine could not be observed');
        }),
      ),
    );
  }

  async function observeOne(row: InstanceRow): Promise<void> {
    const driver = hosts.driverOf(row.host_id);
    if (driver === undefined || !hosts.reaches(row.host_id, row.node)) return;
    const state = await withTimeout(driver.inspect(row.id), observePatienceMs);
    const changes = observe(row, state, clock.now());
    if (Object.keys(changes).length === 0) return;
    await apply(row, toSettled(row, changes), null);
  }

  function hint(id: string | null): void {
    if (stopped || timers.length === 0) return;
    if (id === null) observeSoon();
    else hints.add(id);
  }

  async function settle(): Promise<void> {
    while ((await look()) > 0 || inFlight.size > 0) await Promise.all(inFlight);
  }

  const complain = (error: unknown) => log.error({ err: error }, 'the reconciler failed');
  const hints = createHints(db, clock, { nudge: () => nudge(), complain });

  function nudge(): void {
    if (!stopped && timers.length > 0) look().catch(complain);
  }

  function observeSoon(): void {
    observing ??= observeSome()
      .catch(complain)
      .finally(() => {
        observing = undefined;
      });
  }

  function start(): void {
    timers.push(setInterval(nudge, tickMs), setInterval(observeSoon, observeMs));
    nudge();
  }

  async function stop(): Promise<void> {
    stopped = true;
    for (const timer of timers) clearInterval(timer);
    hints.stop();
    await looking?.catch(complain);
    await observing;
    await Promise.all(inFlight);
  }

  return { start, nudge, settle, observeSome, hint, stop };
}
