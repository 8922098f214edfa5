// The host's NVIDIA GPUs, and the device files that a machine needs for those attached to it.

import { readdir, readFile } from 'node:fs/promises';
import { DriverError, type DriverReport } from '#cloud/drivers/driver.ts';
import { queryNvidiaSmi } from '#lib/computer/nvidia-smi.ts';

export interface Gpu {
  /** UUID, which CUDA_VISIBLE_DEVICES accepts and a reboot does not change. */
  readonly address: string;
  readonly model: string;
  readonly memoryGib: number;
  /** PCI bus id, as spelled in /proc/driver/nvidia/gpus. */
  readonly bus: string;
}

export const findGpus = (): Promise<Gpu[]> =>
  queryNvidiaSmi('gpu', 'uuid,name,memory.total,pci.bus_id').then(toGpus, () => []);

export const toGpus = (lines: readonly string[][]): Gpu[] =>
  lines
    .filter((fields) => fields.length === 4 && fields[0]!.startsWith('GPU-'))
    .map(([address, model, mebibytes, bus]) => ({
      address: address!,
      model: model!,
      memoryGib: Math.round(Number(mebibytes) / 1024) || 0,
      // nvidia-smi prints an eight-digit domain in upper case, /proc four digits in lower case.
      bus: bus!.toLowerCase().replace(/^0000(?=[0-9a-f]{4}:)/, ''),
    }));

export function toReport(gpus: readonly Gpu[]): DriverReport['gpus'] {
  return gpus.map(({ address, model, memoryGib }) => ({ address, model, memoryGib }));
}

/** Returns names under /dev: those of the given GPUs and those that every CUDA program needs. */
export async function gpuDevices(addresses: readonly string[]): Promise<string[]> {
  if (addresses.length === 0) return [];
  const gpus = await findGpus();
  const minors = await Promise.all(
    addresses.map(async (address) => {
      const gpu = gpus.find((candidate) => candidate.address === address);
      if (!gpu) throw new DriverError('impossible', `This host has no GPU ${address}.`);
      return parseMinor(await readFile(`/proc/driver/nvidia/gpus/${gpu.bus}/information`, 'utf8'));
    }),
  );
  const shared = (await readdir('/dev')).filter((name) =>
    ['nvidiactl', 'nvidia-uvm', 'nvidia-uvm-tools', 'nvidia-modeset'].includes(name),
  );
  return [...minors.map((minor) => `nvidia${minor}`), ...shared];
}

export function parseMinor(information: string): number {
  const minor = /^Device Minor:\s*(\d+)/m.exec(information)?.[1];
  if (minor === undefined) throw new DriverError('unavailable', 'A GPU has no device number.');
  return Number(minor);
}
