// Which process is meant, so that a pid that was given to somebody else since is never taken for ours:
// the pid together with its start time, both as /proc tells them.

import { readFile } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';

export interface ProcessIdentity {
  readonly pid: number;
  /** In clock ticks since boot, field 22 of /proc/PID/stat. */
  readonly startTime: string;
}

/** Undefined when there is no such process, or only a zombie of it: PID 1 of the host may reap late. */
export async function findProcess(pid: number): Promise<ProcessIdentity | undefined> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
  // The name in parentheses may hold spaces and parentheses itself.
  const [state, ...fields] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const startTime = fields[18];
  if (!startTime || state === 'Z' || state === 'X') return undefined;
  return { pid, startTime };
}

export async function isAlive(process: ProcessIdentity): Promise<boolean> {
  return (await findProcess(process.pid))?.startTime === process.startTime;
}

/** The first child, as the host numbers it; namespaces make `pid 1` inside of what is one child outside. */
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

/** True when it was gone before the time was over. */
export async function waitUntilGone(target: ProcessIdentity, timeoutMs: number): Promise<boolean> {
  const deadline = performance.now() + timeoutMs;
  while (await isAlive(target)) {
    if (performance.now() > deadline) return false;
    await pause(10);
  }
  return true;
}
