// The reconciler's work on instances: one step of a due instance, and observation of settled ones. Load the
// row, act on the driver with no transaction open, apply the result by compare-and-set.

import type { Logger } from 'pino';
import type { Audit } from '#accounts/audit/audit.ts';
import { DriverError } from '#cloud/drivers/driver.ts';
import type { Hosts } from '#cloud/hosts/hosts.ts';
import { recordHealth } from '#cloud/instances/health-events.ts';
import type { InstanceEvents } from '#cloud/instances/instance-events.ts';
import type { InstanceFirewall } from '#cloud/resources/firewall.ts';
import type { InstanceRow } from '#db/tables/cloud-rows.ts';
import type { Database } from '#db/tables/tables.ts';
import { withTimeout } from '#lib/async/with-timeout.ts';
import type { Clock } from '#lib/clock.ts';
import type { Seal } from '#lib/secrets/seal.ts';
import type { Claim, Claims } from './claims.ts';
import { afterFailure, observe, type StepResult, step, toSettled } from './instance-steps.ts';
import { loadSpec } from './machine-specs.ts';

export interface InstanceWorkContext {
  readonly db: Database;
  readonly clock: Clock;
  readonly audit: Audit;
  readonly claims: Claims;
  readonly hosts: Pick<Hosts, 'driverOf' | 'reachable' | 'reaches' | 'suspect'>;
  readonly events: InstanceEvents;
  readonly firewall: InstanceFirewall;
  readonly seal: Seal;
  readonly log: Logger;
  /** A row is due: now, or in the given time. */
  nudge(inMs?: number): void;
}

/** Delay for an instance whose node is offline while the rest of its host answers. */
const offlineNodeMs = 5_000;
/** A round of observations takes as long as its slowest one. */
const observeTimeoutMs = 10_000;
const maxObserved = 32;

export async function reconcileInstance(context: InstanceWorkContext, claim: Claim): Promise<void> {
  const { db, clock, hosts, log } = context;
  const row = await db
    .selectFrom('instances')
    .selectAll()
    .where('id', '=', claim.id)
    .where('claim', '=', claim.token)
    .executeTakeFirst();
  if (row === undefined) return;
  const driver = hosts.driverOf(row.host_id);
  if (driver === undefined || !hosts.reaches(row.host_id, row.node)) {
    await apply(context, row, { changes: {}, dueInMs: offlineNodeMs }, claim.token);
    return;
  }
  const result = await loadSpec(context, row)
    .then((spec) => step(row, driver, spec, clock.now()))
    .catch((error) => {
      suspectHost(context, row, error);
      const attempt = row.attempts + 1;
      log.warn({ err: error, instance: row.id, attempt }, 'a machine step failed');
      return afterFailure(row, error, clock.now());
    });
  if (await apply(context, row, result, claim.token)) return;
  // A newer command changed the row meanwhile: it is still due, and the claim must be released.
  await context.claims.release('instances', claim);
  context.nudge();
}

/**
 * Observes the next few settled instances after the cursor, and returns the new cursor and how
 * many. The work per round does not grow with the number of instances.
 */
export async function observeSettled(
  context: InstanceWorkContext,
  cursor: string,
): Promise<{ readonly cursor: string; readonly observed: number }> {
  const reachable = context.hosts.reachable();
  if (reachable.length === 0) return { cursor, observed: 0 };
  const rows = await context.db
    .selectFrom('instances')
    .selectAll()
    .where('status', '!=', 'terminated')
    .where('due_at', 'is', null)
    .where('host_id', 'in', reachable)
    .where('id', '>', cursor)
    .orderBy('id')
    .limit(maxObserved)
    .execute();
  await Promise.all(
    rows.map((row) =>
      observeOne(context, row).catch((error) => {
        suspectHost(context, row, error);
        context.log.warn({ err: error, instance: row.id }, 'cannot observe a machine');
      }),
    ),
  );
  const next = rows.length < maxObserved ? '' : (rows.at(-1)?.id ?? '');
  return { cursor: next, observed: rows.length };
}

async function observeOne(context: InstanceWorkContext, row: InstanceRow): Promise<void> {
  const { hosts, clock } = context;
  const driver = hosts.driverOf(row.host_id);
  if (driver === undefined || !hosts.reaches(row.host_id, row.node)) return;
  const state = await withTimeout(driver.inspect(row.id), observeTimeoutMs);
  const changes = observe(row, state, clock.now());
  if (Object.keys(changes).length === 0) return;
  await apply(context, row, toSettled(row, changes), null);
}

/** An error that a retry can't fix says nothing about the host. */
function suspectHost({ hosts }: InstanceWorkContext, { host_id }: InstanceRow, error: unknown) {
  const isPermanent = error instanceof DriverError && error.failure === 'impossible';
  if (!isPermanent) hosts.suspect(host_id);
}

/** Writes the result unless the row has changed since it was read. Returns whether it was written. */
async function apply(
  context: InstanceWorkContext,
  row: InstanceRow,
  { changes, dueInMs }: StepResult,
  token: string | null,
): Promise<boolean> {
  const { db, clock } = context;
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
    await recordHealth(tx, context.audit, row, changes);
    return true;
  });
  if (applied) announce(context, row, changes);
  if (applied && dueInMs !== null) context.nudge(dueInMs);
  return applied;
}

function announce(
  { events, log }: InstanceWorkContext,
  row: InstanceRow,
  changes: Partial<InstanceRow>,
): void {
  const { status = row.status, ip = row.ip, action = row.action } = changes;
  if (status === row.status && ip === row.ip && action === row.action) return;
  if (status !== row.status) {
    const { status_reason: reason } = changes;
    log.info({ instance: row.id, from: row.status, to: status, reason }, 'instance changed');
  }
  events.publish({ accountId: row.account_id, instanceId: row.id, status });
}
