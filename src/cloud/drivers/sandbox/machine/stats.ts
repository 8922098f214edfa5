// What a running machine uses, read from the kernel when it is asked for: its control group, its network namespace and
// the file system of its disk. A figure that this host can't measure comes with the reason.

import { access, readFile, readlink, statfs } from 'node:fs/promises';
import type { MachineStats, Measured } from '#cloud/drivers/driver.ts';
import { withTimeout } from '#lib/async/with-timeout.ts';
import type { readGpuStats } from '#lib/computer/nvidia-smi.ts';
import { readProcesses, sumBytes } from '#lib/computer/process-memory.ts';
import { readGroups } from './control-groups.ts';
import type { RunningMachine } from './enter.ts';

/** So that the other figures are reported even if nvidia-smi hangs. */
const gpuTimeoutMs = 3_000;

const unavailable = (reason: string) => ({ unavailable: reason });

/** `readGpus` reads all GPUs of the host. */
export async function measureMachine(
  machine: RunningMachine,
  readGpus: typeof readGpuStats,
): Promise<MachineStats> {
  const [group, diskBytes, network, gpus] = await Promise.all([
    measureGroup(machine),
    measureDisk(machine),
    measureNetwork(machine),
    measureGpus(machine.record.spec.gpus, readGpus),
  ]);
  return { ...group, diskBytes, network, gpus };
}

async function measureGroup({
  host,
  directory,
  process,
}: RunningMachine): Promise<Pick<MachineStats, 'cpuMs' | 'memoryBytes'>> {
  if (host.controlGroups === null) {
    const none = unavailable('This host gives the server no control groups, which count it.');
    const bytes = host.mode === 'none' ? null : await sumProcesses(process.init.pid);
    return { cpuMs: none, memoryBytes: bytes === null ? none : { value: bytes } };
  }
  const { cpuMs, memoryBytes } = await readGroups(host.controlGroups, directory.id);
  const uncounted = unavailable('Its control group does not count it. Restart the machine.');
  return {
    cpuMs: cpuMs === null ? uncounted : { value: cpuMs },
    memoryBytes: memoryBytes === null ? uncounted : { value: memoryBytes },
  };
}

/** The resident memory of all processes in the namespace of process 1; null if it has just ended. */
async function sumProcesses(init: number): Promise<number | null> {
  const find = (pid: number) => readlink(`/proc/${pid}/ns/pid`).catch(() => null);
  const namespace = await find(init);
  if (namespace === null) return null;
  const processes = await readProcesses();
  const places = await Promise.all(processes.map(({ pid }) => find(pid)));
  return sumBytes(processes.filter((_, index) => places[index] === namespace));
}

/**
 * The root of process 1 is the disk. Only an image is a file system of its own. No name below the root is resolved: a
 * link that the tenant put there would lead to the host's files.
 */
async function measureDisk({ directory, process }: RunningMachine): Promise<Measured<number>> {
  try {
    await access(directory.diskImage);
  } catch {
    return unavailable('This host keeps disks as directories, whose use is not counted.');
  }
  try {
    const { blocks, bfree, bsize } = await statfs(`/proc/${process.init.pid}/root`);
    return { value: (blocks - bfree) * bsize };
  } catch {
    return unavailable('The machine is just starting or stopping.');
  }
}

async function measureNetwork({ host, process }: RunningMachine): Promise<MachineStats['network']> {
  if (!host.canRoute) {
    return unavailable(host.networkObstacle ?? 'Machines share the network of this host.');
  }
  const devices = await readFile(`/proc/${process.init.pid}/net/dev`, 'utf8').catch(() => '');
  const counters = /^\s*eth0:\s*(.+)$/m.exec(devices)?.[1]?.split(/\s+/).map(Number);
  if (counters === undefined) return unavailable('The machine has no interface yet.');
  // The first eight columns are about received packets, the others about sent ones.
  return { value: { receivedBytes: counters[0] ?? 0, sentBytes: counters[8] ?? 0 } };
}

async function measureGpus(
  addresses: readonly string[],
  readGpus: typeof readGpuStats,
): Promise<MachineStats['gpus']> {
  if (addresses.length === 0) return { value: [] };
  const all = await withTimeout(readGpus(), gpuTimeoutMs).catch(() => null);
  const gpus = addresses.map((address) => all?.get(address));
  return gpus.every((gpu) => gpu !== undefined)
    ? { value: gpus }
    : unavailable('nvidia-smi does not list its GPUs on this host.');
}
