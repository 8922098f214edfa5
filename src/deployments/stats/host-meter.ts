// Measures engines that are processes of this computer. It reads something only when it is asked to, and one reading
// serves all engines for a second.

import { access, readlink } from 'node:fs/promises';
import { totalmem } from 'node:os';
import type { EngineStats } from '#deployments/engines/engine.ts';
import { shareRecent } from '#lib/async/share-recent.ts';
import { withTimeout } from '#lib/async/with-timeout.ts';
import {
  type GpuProcess,
  type GpuStats,
  readGpuProcesses,
  readGpuStats,
} from '#lib/computer/nvidia-smi.ts';
import { findTree, readProcesses, sumBytes } from '#lib/computer/process-memory.ts';

export interface HostMeter {
  /** Measures the process with all its children. `env` is its environment. */
  measure(pid: number, env: Readonly<Record<string, string>>): Promise<EngineStats>;
}

const sharedMs = 1_000;
/** So that the memory is reported even if nvidia-smi hangs. */
const gpuTimeoutMs = 3_000;

export function createHostMeter(): HostMeter {
  const processes = shareRecent(sharedMs, readProcesses);
  const gpuStats = shareRecent(sharedMs, readGpuStats);
  const gpuProcesses = shareRecent(sharedMs, readGpuProcesses);

  async function measureGpus(
    pids: ReadonlySet<number>,
    visible: string | undefined,
  ): Promise<EngineStats['gpus']> {
    const [all, users] = await Promise.all([
      withTimeout(gpuStats(), gpuTimeoutMs).catch(() => null),
      withTimeout(gpuProcesses(), gpuTimeoutMs).catch(() => []),
    ]);
    if (all === null && (await hasDriver()))
      return { unavailable: 'nvidia-smi does not respond on this computer.' };
    if (all === null || all.size === 0) return { value: [] };
    const held = findHeld([...all.keys()], users, pids, visible);
    if (held !== null) return { value: held.map((address) => all.get(address) as GpuStats) };
    return (await isContained()) ? { unavailable: hiddenProcesses } : { value: [] };
  }

  return {
    async measure(pid, env) {
      const tree = findTree(await processes(), pid);
      const gpus = await measureGpus(new Set(tree.map((one) => one.pid)), env.CUDA_VISIBLE_DEVICES);
      return {
        memoryBytes:
          tree.length > 0
            ? { value: sumBytes(tree) }
            : { unavailable: 'This computer does not say what the engine uses.' },
        totalBytes: Math.min(totalmem(), process.constrainedMemory() || Number.POSITIVE_INFINITY),
        gpus,
      };
    },
  };
}

const hiddenProcesses =
  'In a container, nvidia-smi does not list which processes use a GPU. Set CUDA_VISIBLE_DEVICES in the environment of the deployment.';

/**
 * The GPUs on which one of the processes computes; if there is none, those that CUDA_VISIBLE_DEVICES lists by number or
 * UUID. Null if neither is known.
 */
export function findHeld(
  addresses: readonly string[],
  users: readonly GpuProcess[],
  pids: ReadonlySet<number>,
  visible: string | undefined,
): readonly string[] | null {
  const used = new Set(users.filter(({ pid }) => pids.has(pid)).map(({ gpu }) => gpu));
  if (used.size > 0) return addresses.filter((address) => used.has(address));
  if (visible === undefined) return null;
  const names = visible.split(',').map((name) => name.trim());
  return addresses.filter((address, index) =>
    // CUDA takes the first characters of a UUID, too.
    names.some((name) => name === `${index}` || (/^GPU-./.test(name) && address.startsWith(name))),
  );
}

const hasDriver = () =>
  access('/proc/driver/nvidia').then(
    () => true,
    () => false,
  );

/** Linux gives the first namespace of process ids this number. */
const firstNamespace = 'pid:[4026531836]';

const isContained = async () =>
  (await readlink('/proc/self/ns/pid').catch(() => firstNamespace)) !== firstNamespace;
