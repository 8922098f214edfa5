// The GPU that the models of this computer share. It is taken when the first of them is loaded and given back when the
// last one is unloaded or turns out to run on the CPU.

import type { FastifyBaseLogger } from 'fastify';
import { createKeyedMutex } from '#lib/async/keyed-mutex.ts';

/** What one child process may use, until it is released. */
export interface GpuLease {
  readonly gpu: 'auto' | false;
  /** The only GPU that the child may use, as CUDA_VISIBLE_DEVICES names it; null for any. */
  readonly device: string | null;
  /** Idempotent. */
  release(): void;
}

/** Where GPUs come from: the machines of this host use them too. */
export interface GpuSource {
  /** Returns the name of a GPU, null if all are in use, or undefined if the host has none to share with machines. */
  take(): Promise<string | null | undefined>;
  giveBack(): Promise<void>;
}

const onCpu: GpuLease = { gpu: false, device: null, release() {} };
const onAnyGpu: GpuLease = { gpu: 'auto', device: null, release() {} };

export const borrowNoGpu = async (): Promise<GpuLease> => onCpu;

/** Without a source, no machine can have a GPU, so models may use all of them. */
export function createGpuLeases(
  source: GpuSource | null,
  log: FastifyBaseLogger,
): () => Promise<GpuLease> {
  if (source === null) return async () => onAnyGpu;
  const mutex = createKeyedMutex();
  const leases = new Set<GpuLease>();
  let device: string | null = null;

  const release = async (lease: GpuLease): Promise<void> => {
    leases.delete(lease);
    if (leases.size > 0 || device === null) return;
    await source.giveBack();
    log.info({ gpu: device }, 'models gave the GPU back');
    device = null;
  };

  const borrow = async (): Promise<GpuLease> => {
    if (device === null) {
      const taken = await source.take();
      if (taken === undefined) return onAnyGpu;
      if (taken === null) return onCpu;
      device = taken;
      log.info({ gpu: device }, 'models took a GPU');
    }
    const lease: GpuLease = {
      gpu: 'auto',
      device,
      release() {
        if (!leases.has(lease)) return;
        // If the database fails, the GPU stays with the models and is given back after the next lease.
        mutex
          .run('gpu', () => release(lease))
          .catch((error) => log.warn({ err: error }, 'the GPU of models was not given back'));
      },
    };
    leases.add(lease);
    return lease;
  };

  return () =>
    mutex.run('gpu', borrow).catch((error) => {
      log.warn({ err: error }, 'no GPU could be taken, so the model runs on the CPU');
      return onCpu;
    });
}
