// llama.cpp as the npm package of this platform brings it: an addon and the libraries beside it. The package belongs to
// node-llama-cpp, whose JavaScript is not used: it can't batch without gaps, score prompts or copy sequences, and it
// would bring 130 packages. The addon's interface has no promise of stability, so the version is pinned.

import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { EngineError } from '#inference/engine.ts';
import type { ModelInfo } from '#inference/engines/local/protocol.ts';
import { findLlamaLibraries } from '#lib/computer/llama-libraries.ts';
import type { Grammar, GrammarState, RawContext, RawModel, RawSampler } from './binding.ts';

export interface Native {
  AddonModel: new (path: string, options: ModelParameters) => NativeModel;
  AddonContext: new (model: NativeModel, options: ContextParameters) => NativeContext;
  AddonSampler: {
    new (model: RawModel): RawSampler;
    acceptGrammarEvaluationStateToken(state: GrammarState, token: number): void;
  };
  AddonGrammar: new (gbnf: string, options: { rootRuleName: string }) => Grammar;
  AddonGrammarEvaluationState: new (model: RawModel, grammar: Grammar) => GrammarState;
  setLogger(log: (level: number, message: string) => void): void;
  setLoggerLogLevel(level: number): void;
  /** Loads the libraries beside the addon, or those of another folder. */
  loadBackends(folder?: string): void;
  init(): Promise<void>;
  getGpuType(): ModelInfo['gpu'] | undefined;
  /** Throws if the GPU lacks what llama.cpp needs. */
  ensureGpuDeviceIsSupported(): void;
  /** Bytes. */
  getGpuVramInfo(): { total: number; used: number };
  /** Cores that are useful for computing. */
  getMathCores(): number;
}

export interface ModelParameters {
  gpuLayers: number;
  useMmap: boolean;
  /** Lays everything out without allocating it, so that `getMemoryBreakdown` can be asked. */
  noAlloc?: boolean;
}

export interface ContextParameters {
  contextSize: number;
  batchSize: number;
  sequences: number;
  threads: number;
  flashAttention: boolean | 'auto';
  /** The context computes vectors instead of logits. Default false. */
  embeddings?: boolean;
  /** The vectors come from the model's ranking head. Default false. */
  ranking?: boolean;
}

interface Measured {
  /** Resolves to false if it could not be loaded. */
  init(): Promise<boolean>;
  dispose(): Promise<void>;
  /** Bytes. */
  getMemoryBreakdown(): { cpuRam: number; gpuVram: number };
}

export type NativeModel = RawModel & Measured;
export type NativeContext = RawContext & Measured;

const errorsOnly = 2;

/** Starts llama.cpp on the CPU, and also on the GPU if there are kernels for it. One process may start it once. */
export async function startNative(kernels: string | null): Promise<Native> {
  const folder = findLlamaLibraries();
  const native: Native = createRequire(import.meta.url)(join(folder, 'llama-addon.node'));
  native.setLogger((_, message) => process.stderr.write(`llama.cpp: ${message}\n`));
  native.setLoggerLogLevel(errorsOnly);
  native.loadBackends();
  // Elsewhere than beside Node, the libraries are found only if their folder is named.
  if (native.getGpuType() === undefined) native.loadBackends(folder);
  if (kernels !== null) {
    native.loadBackends(dirname(kernels));
    if ((native.getGpuType() ?? false) === false)
      throw new EngineError('unavailable', `The GPU kernels in ${kernels} could not be loaded.`);
  }
  native.ensureGpuDeviceIsSupported();
  await native.init();
  return native;
}
