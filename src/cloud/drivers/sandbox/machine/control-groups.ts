// Limits CPU, memory and processes by cgroup, version 1 or 2. A machine's groups are named by its id, so they
// can be found without a record.

import { access, mkdir, readdir, readFile, rmdir, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

const parent = 'millrace';
const controllers = ['cpu', 'memory', 'pids'] as const;
const periodMicroseconds = 100_000;
const processesPerVcpu = 1024;
/** Groups younger than this may belong to a boot in progress, which takes far less. */
const maxBootMs = 300_000;

export interface ControlGroups {
  readonly version: 1 | 2;
  /** Mount point of each controller, in the order of `controllers`; a single one for version 2. A version 1 host that
   * mounts CPU accounting apart from CPU limits has it as the last. */
  readonly mounts: readonly string[];
}

export interface GroupLimits {
  readonly vcpus: number;
  readonly memoryGib: number;
}

/** Returns null where limits can't be set, e.g. in a container that may not write to its groups. */
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

/** Prefers version 1 where both are mounted: a hybrid host keeps the controllers there. */
export function parseControlGroups(mounts: string): ControlGroups | null {
  const lines = mounts.split('\n').map((line) => line.split(' '));
  const findMount = (name: string) =>
    lines.find(([, , type, options]) => type === 'cgroup' && options?.split(',').includes(name));
  const first = controllers.map(findMount);
  if (first.every((line) => line !== undefined)) {
    const mounts = first.map((line) => line[1]!);
    const accounting = findMount('cpuacct')?.[1];
    const isApart = accounting !== undefined && !mounts.includes(accounting);
    return { version: 1, mounts: isApart ? [...mounts, accounting] : mounts };
  }
  const second = lines.find(([, , type]) => type === 'cgroup2');
  return second ? { version: 2, mounts: [second[1]!] } : null;
}

/** Returns the files to which a process writes `0` to join a machine's groups. */
export function joinFiles(groups: ControlGroups, id: string): string[] {
  return groups.mounts.map((mount) => path.join(mount, parent, id, 'cgroup.procs'));
}

/** Maximum number of processes and threads of a machine. */
export function processLimit(vcpus: number): number {
  return Math.max(2, vcpus) * processesPerVcpu;
}

export async function createGroups(groups: ControlGroups, id: string, limits: GroupLimits) {
  const memoryBytes = String(Math.round(limits.memoryGib * 1024 ** 3));
  const quota = String(Math.round(limits.vcpus * periodMicroseconds));
  const processes = String(processLimit(limits.vcpus));
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
    // Kernels without swap accounting lack its limit. Every other limit must be set.
    const optional = /swap|memsw/.test(file);
    if (!optional || (await exists(target))) await writeFile(target, value);
  }
}

export interface GroupUsage {
  /** Milliseconds; null if the group counts no CPU time. */
  readonly cpuMs: number | null;
  readonly memoryBytes: number | null;
}

/** Reads what the processes of a machine use. Members are null where the kernel has no file for them. */
export async function readGroups(
  { version, mounts }: ControlGroups,
  id: string,
): Promise<GroupUsage> {
  const [cpu = '', memory = cpu] = mounts;
  const read = (mount: string, file: string) =>
    readFile(path.join(mount, parent, id, file), 'utf8').catch(() => '');
  if (version === 2) {
    return {
      cpuMs: divide(findField(await read(cpu, 'cpu.stat'), 'usage_usec'), 1e3),
      memoryBytes: withoutCache(
        await read(cpu, 'memory.current'),
        findField(await read(cpu, 'memory.stat'), 'inactive_file'),
      ),
    };
  }
  const accounting = mounts[controllers.length] ?? cpu;
  return {
    cpuMs: divide(toNumber(await read(accounting, 'cpuacct.usage')), 1e6),
    memoryBytes: withoutCache(
      await read(memory, 'memory.usage_in_bytes'),
      findField(await read(memory, 'memory.stat'), 'total_inactive_file'),
    ),
  };
}

const toNumber = (text: string) => (text.trim() === '' ? null : Number(text));
const divide = (value: number | null, by: number) => (value === null ? null : value / by);
const findField = (text: string, name: string) =>
  toNumber(new RegExp(`^${name} (\\d+)$`, 'm').exec(text)?.[1] ?? '');

function withoutCache(used: string, cache: number | null): number | null {
  const bytes = toNumber(used);
  return bytes === null ? null : Math.max(0, bytes - (cache ?? 0));
}

/** Limits the memory of all machines of this host together. */
export async function limitAllGroups({ version, mounts }: ControlGroups, memoryBytes: number) {
  const mount = mounts[controllers.indexOf('memory')] ?? mounts[0]!;
  const file = version === 2 ? 'memory.max' : 'memory.limit_in_bytes';
  await writeFile(path.join(mount, parent, file), String(memoryBytes));
}

/** Waits up to five seconds: a group can be removed only once its last process was reaped. */
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
        throw new Error(`The control group of ${id} can't be removed (${code}).`);
      }
      await pause(20);
    }
  }
}

/**
 * Removes groups of machines whose server and data directory are gone. Groups of other servers on this host
 * are safe: the kernel refuses to remove a group with a process, and one about to get its first is too young.
 */
export async function removeLeftoverGroups(groups: ControlGroups) {
  for (const mount of new Set(groups.mounts)) {
    const names = await readdir(path.join(mount, parent)).catch(() => []);
    for (const name of names.filter((each) => /^[0-9a-f]{32}$/.test(each))) {
      const folder = path.join(mount, parent, name);
      const made = await stat(folder).catch(() => null);
      if (made && Date.now() - made.mtimeMs > maxBootMs) await rmdir(folder).catch(() => {});
    }
  }
}

async function exists(file: string): Promise<boolean> {
  return access(file).then(
    () => true,
    () => false,
  );
}
