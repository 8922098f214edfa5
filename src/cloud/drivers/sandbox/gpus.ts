// The host's NVIDIA GPUs, and the device files that a machine needs for those attached to it.

import { execFile } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { DriverError, type DriverReport, type GpuStats } from '#cloud/drivers/driver.ts';

const execute = promisify(execFile);

export interface Gpu {
  /** UUID, which CUDA_VISIBLE_DEVICES accepts and a reboot does not change. */
  readonly address: string;
  readonly model: string;
  readonly memoryGib: number;
  /** PCI bus id, as spelled in /proc/driver/nvidia/gpus. */
  readonly bus: string;
}

export async function findGpus(): Promise<Gpu[]> {
  const query = ['--query-gpu=uuid,name,memory.total,pci.bus_id', '--format=csv,noheader,nounits'];
  return execute('nvidia-smi', query, { timeout: 20_000 }).then(
    ({ stdout }) => parseGpus(stdout),
    () => [],
  );
}

export function parseGpus(csv: string): Gpu[] {
  return csv
    .split('\n')
    .map((line) => line.split(',').map((field) => field.trim()))
    .filter((fields) => fields.length === 4 && fields[0]!.startsWith('GPU-'))
    .map(([address, model, mebibytes, bus]) => ({
      address: address!,
      model: model!,
      memoryGib: Math.round(Number(mebibytes) / 1024) || 0,
      // nvidia-smi prints an eight-digit domain in upper case, /proc four digits in lower case.
      bus: bus!.toLowerCase().replace(/^0000(?=[0-9a-f]{4}:)/, ''),
    }));
}

export function toReport(gpus: readonly Gpu[]): DriverReport['gpus'] {
  return gpus.map(({ address, model, memoryGib }) => ({ address, model, memoryGib }));
}

/** Measures these GPUs. Throws if nvidia-smi fails or does not list one of them. */
export async function measureGpus(addresses: readonly string[]): Promise<GpuStats[]> {
  const fields = 'uuid,name,utilization.gpu,memory.used,memory.total';
  const argv = [`--query-gpu=${fields}`, '--format=csv,noheader,nounits'];
  const { stdout } = await execute('nvidia-smi', argv, { timeout: 20_000 });
  const measured = parseGpuStats(stdout);
  return addresses.map((address) => {
    const gpu = measured.get(address);
    if (gpu === undefined) throw new Error(`nvidia-smi does not list GPU ${address}.`);
    return gpu;
  });
}

/** By UUID. */
export function parseGpuStats(csv: string): Map<string, GpuStats> {
  const lines = csv.split('\n').map((line) => line.split(',').map((field) => field.trim()));
  return new Map(
    lines
      .filter((fields) => fields.length === 5)
      .map(([address, model, busy, used, total]) => [
        address!,
        {
          model: model!,
          // nvidia-smi prints [N/A] for a GPU that is sliced.
          busyPercent: Number(busy) || 0,
          memoryBytes: (Number(used) || 0) * 1024 ** 2,
          totalBytes: (Number(total) || 0) * 1024 ** 2,
        },
      ]),
  );
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
