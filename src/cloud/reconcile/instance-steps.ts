// One step of an instance towards what its row wants: calls the driver, touches no database, and returns the
// changes of the row. Every step may be repeated after a crash.

import {
  type Driver,
  DriverError,
  type MachineSpec,
  type MachineState,
} from '#cloud/drivers/driver.ts';
import type { InstanceRow } from '#db/tables/cloud-rows.ts';

export interface StepResult {
  readonly changes: Partial<InstanceRow>;
  /** Delay until the next step; null if the instance is settled. */
  readonly dueInMs: number | null;
}

const pollMs = 250;
const prepareMs = 1_000;
const minBackoffMs = 500;
const maxBackoffMs = 60_000;
const bootDeadlineMs = 15 * 60_000;
const actionDeadlineMs = 5 * 60_000;
const maxActionAttempts = 5;

export async function step(
  row: InstanceRow,
  driver: Driver,
  spec: MachineSpec,
  now: number,
): Promise<StepResult> {
  if (row.status === 'terminating') return terminate(row, driver, now);
  if (row.action !== null) return reboot(row, driver, spec, now);
  if (row.booted_at === null) return boot(row, driver, spec, now);
  const state = await driver.inspect(row.id);
  const changes = observe(row, state, now);
  if (state.state !== 'running') return { changes, dueInMs: null };
  if (row.firewall_stale !== 0) {
    // First: what refuses keys may run inside the machine, where a tenant can make it fail.
    await driver.setFirewall(spec);
    await driver.refuseKeys(spec);
  }
  return { changes: { ...changes, firewall_stale: 0 }, dueInMs: null };
}

async function boot(
  row: InstanceRow,
  driver: Driver,
  spec: MachineSpec,
  now: number,
): Promise<StepResult> {
  const state = await driver.inspect(row.id);
  // The deadline counts from when the host was asked for the machine, after its weights were copied there.
  const late = row.asked_at === null ? {} : whenLate(row, now, 'The machine has not come up.');
  const reachable = whenReachableAgain(row);
  // A machine is launched again if a crash left it incomplete.
  if (state.state === 'absent' || (state.state === 'stopped' && row.asked_at === null)) {
    const progress = (await driver.prepare?.(spec)) ?? null;
    if (progress !== null)
      return { changes: { ...reachable, status_reason: progress }, dueInMs: prepareMs };
    for (const { id } of spec.filesystems) await driver.createFilesystem(id, spec.node);
    await driver.launch(spec);
    const asked = { asked_at: row.asked_at ?? now, attempts: 0 };
    const noReason = row.status === 'booting' ? { status_reason: null } : {};
    return { changes: { ...asked, ...noReason, ...reachable, ...late }, dueInMs: pollMs };
  }
  if (state.state === 'stopped') return { changes: observe(row, state, now), dueInMs: null };
  if (state.state === 'starting') {
    const changes = { asked_at: row.asked_at ?? now, ip: state.ip, ...reachable, ...late };
    return { changes, dueInMs: pollMs };
  }
  // Clients expect to see the address while the instance is still booting.
  if (row.ip === null) {
    return {
      changes: { asked_at: row.asked_at ?? now, ip: state.ip, ...reachable },
      dueInMs: pollMs,
    };
  }
  return toSettled(row, observe(row, state, now));
}

/** Nothing is left to do, unless the firewall rules have changed since they were applied. */
export function toSettled(row: InstanceRow, changes: Partial<InstanceRow>): StepResult {
  const isStale = row.firewall_stale !== 0 && changes.status === 'active';
  return { changes, dueInMs: isStale ? 0 : null };
}

/** An instance that misses the boot deadline is unhealthy, but booting is still retried. */
function whenLate(row: InstanceRow, now: number, reason: string): Partial<InstanceRow> {
  const since = row.asked_at ?? row.launched_at;
  const late = row.status === 'booting' && now - since > bootDeadlineMs;
  return late ? { status: 'unhealthy', status_reason: reason } : {};
}

/** An instance that was unhealthy only because its host was silent continues where it was. */
const whenReachableAgain = (row: InstanceRow): Partial<InstanceRow> =>
  row.host_silent === 0 ? {} : { status: 'booting', status_reason: null, host_silent: 0 };

async function reboot(
  row: InstanceRow,
  driver: Driver,
  spec: MachineSpec,
  now: number,
): Promise<StepResult> {
  if (row.action_started_at === null) {
    await driver.restart(spec);
    return { changes: { action_started_at: now, attempts: 0 }, dueInMs: pollMs };
  }
  const state = await driver.inspect(row.id);
  const isOverdue = now - row.action_started_at > actionDeadlineMs;
  if (state.state === 'starting' && !isOverdue) return { changes: {}, dueInMs: pollMs };
  const done = { action: null, action_started_at: null };
  if (state.state === 'starting') {
    const reason = 'The machine did not come up again after it was restarted.';
    return { changes: { ...done, status: 'unhealthy', status_reason: reason }, dueInMs: null };
  }
  // Written even if the status is the same: the action is over.
  const status = state.state === 'running' ? 'active' : 'unhealthy';
  return toSettled(row, { status, ...observe(row, state, now), ...done });
}

async function terminate(row: InstanceRow, driver: Driver, now: number): Promise<StepResult> {
  await driver.terminate(row.id);
  const { state } = await driver.inspect(row.id);
  if (state !== 'absent') {
    return { changes: { attempts: row.attempts + 1 }, dueInMs: backoffMs(row.attempts) };
  }
  const changes = { status: 'terminated', terminated_at: now, user_data: null } as const;
  return { changes, dueInMs: null };
}

/** Compares a machine that should be running with its row. Returns no changes if they agree. */
export function observe(row: InstanceRow, state: MachineState, now: number): Partial<InstanceRow> {
  if (state.state === 'running') {
    const { ip, privateIp, sshPort } = state;
    if (row.status === 'active' && row.ip === ip && row.ssh_port === sshPort) return {};
    return {
      status: 'active',
      status_reason: null,
      host_silent: 0,
      ip,
      private_ip: privateIp,
      ssh_port: sshPort,
      booted_at: row.booted_at ?? now,
      attempts: 0,
      last_error: null,
    };
  }
  // The first reason is kept: it says most. Silence of the host is no reason once it answers.
  const hasReason = row.status === 'unhealthy' && row.host_silent === 0;
  if (hasReason || state.state === 'starting') return {};
  const reason =
    state.state === 'stopped' ? state.reason : 'The machine has vanished from its host.';
  return { status: 'unhealthy', status_reason: reason, host_silent: 0 };
}

/** The result of a step that threw: a retry with backoff, or unhealthy if a retry can't help. */
export function afterFailure(row: InstanceRow, error: unknown, now: number): StepResult {
  const reason = error instanceof Error ? error.message : String(error);
  const isPermanent = error instanceof DriverError && error.failure === 'impossible';
  const isExhausted = row.action !== null && row.attempts + 1 >= maxActionAttempts;
  if (row.status !== 'terminating' && (isPermanent || isExhausted)) {
    const changes: Partial<InstanceRow> = {
      status: 'unhealthy',
      status_reason: reason,
      action: null,
      action_started_at: null,
      attempts: 0,
      last_error: reason,
    };
    return { changes, dueInMs: null };
  }
  return {
    changes: { attempts: row.attempts + 1, last_error: reason, ...whenLate(row, now, reason) },
    dueInMs: backoffMs(row.attempts),
  };
}

export const backoffMs = (attempts: number): number =>
  Math.min(maxBackoffMs, minBackoffMs * 2 ** Math.min(attempts, 10));
