// One step of an instance towards what its row wants: asks the driver, touches no database, and says what
// the row shall become. Every step may be repeated after a crash.

import {
  type Driver,
  DriverError,
  type MachineSpec,
  type MachineState,
} from '#cloud/drivers/driver.ts';
import type { InstanceRow } from '#db/cloud-rows.ts';

export interface Outcome {
  readonly changes: Partial<InstanceRow>;
  /** When to look again; null when settled. */
  readonly dueInMs: number | null;
}

const pollMs = 250;
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
): Promise<Outcome> {
  if (row.status === 'terminating') return end(row, driver, now);
  if (row.action !== null) return reboot(row, driver, spec, now);
  if (row.booted_at === null) return boot(row, driver, spec, now);
  const state = await driver.inspect(row.id);
  const changes = observe(row, state, now);
  if (state.state !== 'running') return { changes, dueInMs: null };
  if (row.firewall_stale !== 0) await driver.setFirewall(row.id, spec.firewall);
  return { changes: { ...changes, firewall_stale: 0 }, dueInMs: null };
}

async function boot(
  row: InstanceRow,
  driver: Driver,
  spec: MachineSpec,
  now: number,
): Promise<Outcome> {
  const state = await driver.inspect(row.id);
  const late = whenLate(row, now, 'The machine has not come up.');
  const back = whenHeardAgain(row);
  // A machine that stands half-made because we died in the middle is asked for again.
  if (state.state === 'absent' || (state.state === 'stopped' && row.asked_at === null)) {
    for (const { id } of spec.filesystems) await driver.createFilesystem(id, spec.node);
    await driver.launch(spec);
    return { changes: { asked_at: now, attempts: 0, ...back, ...late }, dueInMs: pollMs };
  }
  if (state.state === 'stopped') return { changes: observe(row, state, now), dueInMs: null };
  if (state.state === 'starting') {
    const changes = { asked_at: row.asked_at ?? now, ip: state.ip, ...back, ...late };
    return { changes, dueInMs: pollMs };
  }
  // Clients expect to see the address while the instance is still booting.
  if (row.ip === null) {
    return { changes: { asked_at: row.asked_at ?? now, ip: state.ip, ...back }, dueInMs: pollMs };
  }
  return toSettled(row, observe(row, state, now));
}

/** Nothing is left to do, unless the machine runs with rules that have changed since. */
export function toSettled(row: InstanceRow, changes: Partial<InstanceRow>): Outcome {
  const behind = row.firewall_stale !== 0 && changes.status === 'active';
  return { changes, dueInMs: behind ? 0 : null };
}

/** Past its time an instance is unhealthy, and still tried. */
function whenLate(row: InstanceRow, now: number, reason: string): Partial<InstanceRow> {
  const late = row.status === 'booting' && now - row.launched_at > bootDeadlineMs;
  return late ? { status: 'unhealthy', status_reason: reason } : {};
}

/** What was unhealthy only by its host's silence goes on where it was. */
const whenHeardAgain = (row: InstanceRow): Partial<InstanceRow> =>
  row.host_silent === 0 ? {} : { status: 'booting', status_reason: null, host_silent: 0 };

async function reboot(
  row: InstanceRow,
  driver: Driver,
  spec: MachineSpec,
  now: number,
): Promise<Outcome> {
  if (row.action_started_at === null) {
    await driver.restart(spec);
    return { changes: { action_started_at: now, attempts: 0 }, dueInMs: pollMs };
  }
  const state = await driver.inspect(row.id);
  const over = now - row.action_started_at > actionDeadlineMs;
  if (state.state === 'starting' && !over) return { changes: {}, dueInMs: pollMs };
  const done = { action: null, action_started_at: null };
  if (state.state === 'starting') {
    const reason = 'The machine did not come up again after it was restarted.';
    return { changes: { ...done, status: 'unhealthy', status_reason: reason }, dueInMs: null };
  }
  // Always written, also when the status stays: the action is over.
  const status = state.state === 'running' ? 'active' : 'unhealthy';
  return toSettled(row, { status, ...observe(row, state, now), ...done });
}

async function end(row: InstanceRow, driver: Driver, now: number): Promise<Outcome> {
  await driver.terminate(row.id);
  const { state } = await driver.inspect(row.id);
  if (state !== 'absent') {
    return { changes: { attempts: row.attempts + 1 }, dueInMs: backoffMs(row.attempts) };
  }
  const changes = { status: 'terminated', terminated_at: now, user_data: null } as const;
  return { changes, dueInMs: null };
}

/** What a machine that should be running turns out to be. No changes when it is as the row says. */
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
  // The first reason is the telling one, once the host has been heard.
  const known = row.status === 'unhealthy' && row.host_silent === 0;
  if (known || state.state === 'starting') return {};
  const reason =
    state.state === 'stopped' ? state.reason : 'The machine has vanished from its host.';
  return { status: 'unhealthy', status_reason: reason, host_silent: 0 };
}

/** What a step that threw makes of the row. */
export function fail(row: InstanceRow, error: unknown, now: number): Outcome {
  const reason = error instanceof Error ? error.message : String(error);
  const hopeless = error instanceof DriverError && error.failure === 'impossible';
  const tired = row.action !== null && row.attempts + 1 >= maxActionAttempts;
  if (row.status !== 'terminating' && (hopeless || tired)) {
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
