// Identifies a process by its pid and start time as /proc reports them, so that a pid that the kernel reused
// is never mistaken for the original process.

import { readFile } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';

export interface ProcessIdentity {
  readonly pid: number;
  /** Clock ticks since boot: field 22 of /proc/PID/stat. */
  readonly startTime: string;
}

/** Returns undefined for no process or a zombie, which PID 1 of the host may reap late. */
export async function findProcess(pid: number): Promise<ProcessIdentity | undefined> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
  // The name in parentheses may itself contain spaces and parentheses.
  const [state, ...fields] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const startTime = fields[18];
  if (!startTime || state === 'Z' || state === 'X') return undefined;
  return { pid, startTime };
}

export async function isAlive(process: ProcessIdentity): Promise<boolean> {
  return (await findProcess(process.pid))?.startTime === process.startTime;
}

/** Returns the host's pid of the first child, which is pid 1 inside a machine. */
export async function findChild(pid: number): Promise<number | undefined> {
  const children = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8').catch(() => '');
  const first = Number.parseInt(children, 10);
  return Number.isNaN(first) ? undefined : first;
}

export async function signalProcess(target: ProcessIdentity, signal: NodeJS.Signals) {
  if (!(await isAlive(target))) return;
  try {
    process.kill(target.pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/** Resolves to true if the process ended within the timeout. */
export const waitUntilGone = (target: ProcessIdentity, timeoutMs: number): Promise<boolean> =>
  pollUntil(async () => !(await isAlive(target)), timeoutMs);

/** For states of /proc, which reports no changes. Resolves to true if the condition held within the timeout. */
export async function pollUntil(
  condition: () => Promise<boolean>,
  timeoutMs: number,
): Promise<boolean> {
  const deadline = performance.now() + timeoutMs;
  while (!(await condition())) {
    if (performance.now() > deadline) return false;
    await pause(10);
  }
  return true;
}
