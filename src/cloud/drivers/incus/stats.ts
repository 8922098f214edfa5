// What a machine uses, as the daemon's instance state reports it. The daemon counts neither GPUs nor, on some pools,
// disks.

import type { MachineStats } from '#cloud/drivers/driver.ts';
import type { DaemonClient } from './client.ts';
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
  return state?.status === 'Running' ? toStats(state, instance) : undefined;
}

export function toStats(
  { cpu, memory, disk, network }: InstanceState,
  { devices, type }: Pick<DaemonInstance, 'devices' | 'type'>,
): MachineStats {
  const agent =
    type === 'virtual-machine' ? ' For a virtual machine its agent must run inside it.' : '';
  const unavailable = (what: string) => ({ unavailable: `The daemon reports no ${what}.${agent}` });
  const used = { disk: disk?.root?.usage ?? 0, memory: memory?.usage ?? 0, cpu: cpu?.usage ?? 0 };
  const counters = network?.eth0?.counters;
  const hasGpu = Object.values(devices).some(({ type, path = '' }) =>
    type === 'unix-char' ? path.startsWith('/dev/nvidia') : type === 'gpu',
  );
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
    gpus: hasGpu
      ? { unavailable: 'The daemon does not measure GPUs. Run nvidia-smi in the terminal.' }
      : { value: [] },
  };
}
