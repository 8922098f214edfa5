// The NVIDIA GPUs of this computer, as the driver's own program reports them.

import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const execute = promisify(execFile);
const timeoutMs = 20_000;

/**
 * Runs `nvidia-smi --query-<subject>=<fields>`, and returns the fields of each line. Rejects if it
 * is missing, fails or takes longer than 20 seconds.
 */
export async function queryNvidiaSmi(subject: Subject, fields: string): Promise<string[][]> {
  const [program = '', ...argv] = toQuery(subject, fields);
  const { stdout } = await execute(program, argv, { timeout: timeoutMs });
  return toFields(stdout);
}

type Subject = 'gpu' | 'compute-apps';

const toQuery = (subject: Subject, fields: string) => [
  'nvidia-smi',
  `--query-${subject}=${fields}`,
  '--format=csv,noheader,nounits',
];

/** The fields of each line. A line is left out if it has none. */
export const toFields = (csv: string): string[][] =>
  csv
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line) => line.split(',').map((field) => field.trim()));

/**
 * `[N/A]`, which stands for what can't be measured, is 0. So is nonsense: inside a machine, its
 * owner decides what is printed.
 */
const toCount = (text: string | undefined): number => {
  const count = Number(text);
  return Number.isSafeInteger(count) && count >= 0 ? count : 0;
};

/** More than any GPU has. */
const maxMebibytes = 2 ** 30;

export const toBytes = (mebibytes: string | undefined): number =>
  Math.min(toCount(mebibytes), maxMebibytes) * 1024 ** 2;

export interface GpuStats {
  readonly model: string;
  /** Share of the time in which the GPU computes, 0 to 100. */
  readonly busyPercent: number;
  readonly memoryBytes: number;
  readonly totalBytes: number;
}

const statsFields = 'uuid,name,utilization.gpu,memory.used,memory.total';

/** By UUID, in the order of their numbers. Rejects as `queryNvidiaSmi` does. */
export const readGpuStats = async (): Promise<ReadonlyMap<string, GpuStats>> =>
  toGpuStats(await queryNvidiaSmi('gpu', statsFields));

/** The command whose output `toFields` and `toGpuStats` take, for GPUs that another system sees. */
export const gpuStatsCommand = toQuery('gpu', statsFields);

export const toGpuStats = (lines: readonly string[][]): ReadonlyMap<string, GpuStats> =>
  new Map(
    lines
      .filter((fields) => fields.length === 5)
      .map(([address, model, busy, used, total]) => [
        address!,
        {
          model: model!,
          // nvidia-smi prints [N/A] for a GPU that is sliced.
          busyPercent: Math.min(toCount(busy), 100),
          memoryBytes: toBytes(used),
          totalBytes: toBytes(total),
        },
      ]),
  );

/** A process that uses a GPU. One that uses several is listed for each. */
export interface GpuProcess {
  /** UUID of the GPU. */
  readonly gpu: string;
  readonly pid: number;
  readonly memoryBytes: number;
}

/** Rejects as `queryNvidiaSmi` does. In a container, nvidia-smi lists no processes. */
export const readGpuProcesses = async (): Promise<readonly GpuProcess[]> =>
  toGpuProcesses(await queryNvidiaSmi('compute-apps', 'gpu_uuid,pid,used_memory'));

export const toGpuProcesses = (lines: readonly string[][]): readonly GpuProcess[] =>
  lines
    .filter(([gpu = '']) => gpu.startsWith('GPU-'))
    .map(([gpu, pid, used]) => ({ gpu: gpu!, pid: Number(pid), memoryBytes: toBytes(used) }));
