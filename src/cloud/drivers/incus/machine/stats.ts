// What a machine uses, as the daemon's instance state reports it. The daemon counts neither GPUs,
// which the machine itself is asked for, nor, on some pools, disks.

import type { MachineStats } from '#cloud/drivers/driver.ts';
import type { DaemonClient } from '#cloud/drivers/incus/daemon/client.ts';
import { gpuStatsCommand, toFields, toGpuStats } from '#lib/computer/nvidia-smi.ts';
import { readInside } from './command.ts';
import { type DaemonInstance, instancePath } from './instance.ts';

/** The part of `GET /1.0/instances/<name>/state` that is used here. */
export interface InstanceState {
  readonly status: string;
  readonly cpu?: { readonly usage: number } | null;
  readonly memory?: { readonly usage: number } | null;
  readonly disk?: Readonly<Record<string, { readonly usage: number }>> | null;
  readonly network?: Readonly<
    Record<
      string,
      { readonly counters: { readonly bytes_received: number; readonly bytes_sent: number } }
    >
  > | null;
}

export async function measureInstance(
  client: DaemonClient,
  instance: DaemonInstance,
): Promise<MachineStats | undefined> {
  const state = await client.find<InstanceState>(`${instancePath(instance.name)}/state`);
  if (state?.status !== 'Running') return undefined;
  const gpus = hasGpu(instance) ? await measureGpus(client, instance) : { value: [] };
  return { ...toStats(state, instance), gpus };
}

const hasGpu = ({ devices }: DaemonInstance) =>
  Object.values(devices).some(({ type, path = '' }) =>
    type === 'unix-char' ? path.startsWith('/dev/nvidia') : type === 'gpu',
  );

/** Enough for some hundred GPUs. The program inside may be any that the tenant put there. */
const maxGpuBytes = 16_384;

async function measureGpus(
  client: DaemonClient,
  { name }: DaemonInstance,
): Promise<MachineStats['gpus']> {
  const read = readInside(client, instancePath(name), gpuStatsCommand, maxGpuBytes);
  const gpus = [...toGpuStats(toFields(await read.catch(() => ''))).values()];
  return gpus.length > 0
    ? { value: gpus }
    : {
        unavailable: 'nvidia-smi is missing in the machine, lists no GPU there, or takes too long.',
      };
}

export function toStats(
  { cpu, memory, disk, network }: InstanceState,
  { type }: Pick<DaemonInstance, 'type'>,
): Omit<MachineStats, 'gpus'> {
  const agent =
    type === 'virtual-machine' ? ' For a virtual machine its agent must run inside it.' : '';
  const unavailable = (what: string) => ({ unavailable: `The daemon reports no ${what}.${agent}` });
  const used = { disk: disk?.root?.usage ?? 0, memory: memory?.usage ?? 0, cpu: cpu?.usage ?? 0 };
  const counters = network?.eth0?.counters;
  return {
    cpuMs: used.cpu > 0 ? { value: used.cpu / 1e6 } : unavailable('CPU time'),
    memoryBytes: used.memory > 0 ? { value: used.memory } : unavailable('memory'),
    diskBytes:
      used.disk > 0
        ? { value: used.disk }
        : unavailable('use of this disk, which needs a ZFS, btrfs, LVM or Ceph pool'),
    network: counters
      ? { value: { receivedBytes: counters.bytes_received, sentBytes: counters.bytes_sent } }
      : unavailable('network interface'),
  };
}
