// CPU, memory and process limits by cgroup, version 1 or 2. A machine's groups are named by its id, so
// they are found again without a record.

import { access, mkdir, readdir, readFile, rmdir, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

const parent = 'millrace';
const controllers = ['cpu', 'memory', 'pids'] as const;
const periodMicroseconds = 100_000;
const processesPerVcpu = 1024;
/** Well over the time a boot may take. */
const youngMs = 300_000;

export interface ControlGroups {
  readonly version: 1 | 2;
  /** Mount point of each controller; one and the same for version 2. */
  readonly mounts: readonly string[];
}

export interface GroupLimits {
  readonly vcpus: number;
  readonly memoryGib: number;
}

/** Null where limits can't be set, e.g. inside a container that may not write to its groups. */
export async function findControlGroups(): Promise<ControlGroups | null> {
  const mounts = await readFile('/proc/mounts', 'utf8').catch(() => '');
  const groups = parseControlGroups(mounts);
  if (!groups) return null;
  try {
    for (const mount of new Set(groups.mounts))
      await mkdir(path.join(mount, parent), { recursive: true });
    if (groups.version === 2) {
      const wanted = controllers.map((name) => `+${name}`).join(' ');
      const [root] = groups.mounts;
      await writeFile(path.join(root!, 'cgroup.subtree_control'), wanted);
      await writeFile(path.join(root!, parent, 'cgroup.subtree_control'), wanted);
    }
    return groups;
  } catch {
    return null;
  }
}

/** Version 1 wins where both are mounted: a hybrid host keeps the controllers there. */
export function parseControlGroups(mounts: string): ControlGroups | null {
  const lines = mounts.split('\n').map((line) => line.split(' '));
  const first = controllers.map((name) =>
    lines.find(([, , type, options]) => type === 'cgroup' && options?.split(',').includes(name)),
  );
  if (first.every((line) => line !== undefined)) {
    return { version: 1, mounts: first.map((line) => line[1]!) };
  }
  const second = lines.find(([, , type]) => type === 'cgroup2');
  return second ? { version: 2, mounts: [second[1]!] } : null;
}

/** The files that a process writes `0` to in order to join a machine's groups. */
export function joinFiles(groups: ControlGroups, id: string): string[] {
  return groups.mounts.map((mount) => path.join(mount, parent, id, 'cgroup.procs'));
}

export async function createGroups(groups: ControlGroups, id: string, limits: GroupLimits) {
  const memoryBytes = String(Math.round(limits.memoryGib * 1024 ** 3));
  const quota = String(Math.round(limits.vcpus * periodMicroseconds));
  const processes = String(Math.max(2, limits.vcpus) * processesPerVcpu);
  for (const mount of groups.mounts) await mkdir(path.join(mount, parent, id), { recursive: true });
  const settings: [string, string][] =
    groups.version === 2
      ? [
          ['cpu.max', `${quota} ${periodMicroseconds}`],
          ['memory.max', memoryBytes],
          ['memory.swap.max', '0'],
          ['pids.max', processes],
        ]
      : [
          ['cpu.cfs_period_us', String(periodMicroseconds)],
          ['cpu.cfs_quota_us', quota],
          ['memory.limit_in_bytes', memoryBytes],
          ['memory.memsw.limit_in_bytes', memoryBytes],
          ['pids.max', processes],
        ];
  for (const [file, value] of settings) {
    const mount = groups.mounts[controllers.findIndex((name) => file.startsWith(name))];
    const target = path.join(mount ?? groups.mounts[0]!, parent, id, file);
    // Kernels without swap accounting have no limit for it; every other limit is a promise.
    const optional = /swap|memsw/.test(file);
    if (!optional || (await exists(target))) await writeFile(target, value);
  }
}

/** A group can be removed once its last process was reaped, which may come a little after its death. */
export async function removeGroups(groups: ControlGroups, id: string) {
  const deadline = performance.now() + 5000;
  for (const mount of new Set(groups.mounts)) {
    for (;;) {
      const code = await rmdir(path.join(mount, parent, id)).then(
        () => 'ENOENT',
        (error: NodeJS.ErrnoException) => error.code,
      );
      if (code === 'ENOENT') break;
      if (code !== 'EBUSY' || performance.now() > deadline) {
        throw new Error(`the control group of ${id} can't be removed (${code})`);
      }
      await pause(20);
    }
  }
}

/**
 * What is left of machines whose server and data directory are gone. Other servers on this host have
 * theirs beside ours: the kernel keeps every group that has a process, and one that is about to get its
 * first is young.
 */
export async function removeLeftoverGroups(groups: ControlGroups) {
  for (const mount of new Set(groups.mounts)) {
    const names = await readdir(path.join(mount, parent)).catch(() => []);
    for (const name of names.filter((each) => /^[0-9a-f]{32}$/.test(each))) {
      const folder = path.join(mount, parent, name);
      const made = await stat(folder).catch(() => null);
      if (made && Date.now() - made.mtimeMs > youngMs) await rmdir(folder).catch(() => {});
    }
  }
}

async function exists(file: string): Promise<boolean> {
  return access(file).then(
    () => true,
    () => false,
  );
}
