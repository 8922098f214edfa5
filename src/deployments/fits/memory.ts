// How much memory an engine needs for a model, and whether a place has it. Pure. The weights are exact, the cache is
// that of the requests to aim for, and the rest is an estimate.

import type { DeploymentSpec } from '#deployments/ground/spec.ts';

/** What a model needs memory for. */
export interface ModelShape {
  readonly weightBytes: number;
  /** Values in the KV cache for each token, over all layers. */
  readonly cacheValues: number;
  /** In tokens; null if it is not known. */
  readonly contextWindow: number | null;
}

export interface MemoryNeed {
  readonly weightBytes: number;
  readonly cacheBytes: number;
  readonly overheadBytes: number;
  readonly totalBytes: number;
  /** The cache is for this many requests with as many tokens each. */
  readonly requests: number;
  readonly tokens: number;
}

/** Where an engine may run. */
export interface MemoryPlace {
  /** `host` or the name of an instance type. */
  readonly name: string;
  readonly gpus: readonly GpuMemory[];
  readonly memoryBytes: number;
}

export interface GpuMemory {
  readonly bytes: number;
  /** Bytes that programs of others use. */
  readonly inUseBytes: number;
}

type EngineSettings = Pick<DeploymentSpec, 'engine' | 'args' | 'target'>;

const gib = 2 ** 30;
/** Tokens of a request to expect, if the context is not set. Most are far shorter than the model's window. */
const usualTokens = 8_192;
/** The engine's program, its kernels, and room to compute. */
const overheads: Readonly<Record<DeploymentSpec['engine'], number>> = {
  vllm: gib,
  sglang: gib,
  'llama-server': gib / 2,
  builtin: gib / 4,
  command: gib,
};
/** Room to compute grows with the model. */
const overheadOfWeights = 0.02;

const contextOptions = ['--max-model-len', '--context-length', '--ctx-size', '-c'];
const parallelOptions = ['--tensor-parallel-size', '-tp', '--tp-size', '--tp'];

export function toMemoryNeed(shape: ModelShape, settings: EngineSettings): MemoryNeed {
  const { engine, args, target } = settings;
  const set = readNumber(args, contextOptions);
  const window = shape.contextWindow ?? usualTokens;
  const context = set ?? Math.min(window, usualTokens);
  // llama-server divides its context among the requests. vLLM refuses to start if one request can't fill its window.
  const isShared = engine === 'llama-server' && set !== null;
  const whole = set ?? (engine === 'vllm' ? window : context);
  const isOneLarger = isShared || whole > target * context;
  const [requests, tokens] = isOneLarger ? [1, whole] : [target, context];
  const bytesPerValue = args.some((arg) => /^(--kv-cache-dtype=)?fp8/.test(arg)) ? 1 : 2;
  const cacheBytes = requests * tokens * shape.cacheValues * bytesPerValue;
  const overheadBytes = overheads[engine] + shape.weightBytes * overheadOfWeights;
  const totalBytes = shape.weightBytes + cacheBytes + overheadBytes;
  return {
    ...{ weightBytes: shape.weightBytes, cacheBytes, overheadBytes, totalBytes },
    ...{ requests, tokens },
  };
}

/**
 * The memory of a place that the engine can use. vLLM and SGLang use one GPU unless they are told to use more. The others
 * use all of them, or the computer's own memory if that is larger.
 */
export function toUsable(
  { gpus, memoryBytes }: MemoryPlace,
  { engine, args }: EngineSettings,
): GpuMemory {
  const computer = { bytes: memoryBytes, inUseBytes: 0 };
  if (gpus.length === 0) return computer;
  const isOnGpu = engine === 'vllm' || engine === 'sglang';
  const count = isOnGpu ? (readNumber(args, parallelOptions) ?? 1) : gpus.length;
  const largest = gpus.toSorted((one, other) => toFreeBytes(other) - toFreeBytes(one));
  const all = largest.slice(0, count).reduce((sum, gpu) => ({
    bytes: sum.bytes + gpu.bytes,
    inUseBytes: sum.inUseBytes + gpu.inUseBytes,
  }));
  return isOnGpu || toFreeBytes(all) >= memoryBytes ? all : computer;
}

export const toFreeBytes = ({ bytes, inUseBytes }: GpuMemory) => bytes - inUseBytes;

/** `18.2 of 24.0 GiB, 6.1 in use by other programs: weights 14.9, KV cache 2.1 (8 × 8,192 tokens), overhead 1.2` */
export function describeNeed(need: MemoryNeed, { bytes, inUseBytes }: GpuMemory): string {
  const cache = `${need.requests} × ${need.tokens.toLocaleString('en-US')} tokens`;
  const inUse = inUseBytes === 0 ? '' : `, ${toGib(inUseBytes)} in use by other programs`;
  return (
    `${toGib(need.totalBytes)} of ${toGib(bytes)} GiB${inUse}: weights ${toGib(need.weightBytes)}, ` +
    `KV cache ${toGib(need.cacheBytes)} (${cache}), overhead ${toGib(need.overheadBytes)}`
  );
}

export const toGib = (bytes: number) => (bytes / gib).toFixed(1);

/** The number after an option, or joined to it by `=`. Null if there is none; the last one counts. */
function readNumber(args: readonly string[], names: readonly string[]): number | null {
  const values = args.flatMap((arg, at) => {
    const [name = '', joined] = arg.split('=', 2);
    if (!names.includes(name)) return [];
    const [, digits, unit] = /^(\d+)([kK]?)$/.exec(joined ?? args[at + 1] ?? '') ?? [];
    if (digits === undefined || Number(digits) === 0) return [];
    return [Number(digits) * (unit === 'k' ? 1_000 : unit === 'K' ? 1_024 : 1)];
  });
  return values.at(-1) ?? null;
}
