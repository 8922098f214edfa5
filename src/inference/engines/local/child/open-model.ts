// Opens a GGUF file with node-llama-cpp, and reaches for the package's internal binding. No other file imports it.

import { stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import {
  type GgufFileInfo,
  getLlama,
  type Llama,
  LlamaLogLevel,
  readGgufFileInfo,
} from 'node-llama-cpp';
import { EngineError } from '#inference/engine.ts';
import { defaultContextSize, type ModelOptions } from '#inference/engines/local/protocol.ts';
import { checkModelFiles, GgufError } from '#inference/gguf-check.ts';
import type {
  Binding,
  Grammar,
  GrammarState,
  RawContext,
  RawModel,
  RawSampler,
} from './binding.ts';

/** A batch reserves memory for each of its tokens. Longer batches are no faster on a CPU. */
const cpuBatchTokens = 128;
const gpuBatchTokens = 512;

/**
 * Threads of a model whose layers are all on the GPU. On an H200 with 16 cores, 1, 2, 4 and 8 threads differed by less
 * than their rounds did (1B: 522 to 546 tokens/s with one stream, 1,338 to 1,497 with eight), so few are enough.
 */
const gpuThreads = 2;

interface ArchitectureFacts {
  context_length?: number;
  block_count?: number;
  embedding_length?: number;
  attention?: {
    head_count?: number | number[];
    head_count_kv?: number | number[];
    key_length?: number;
    value_length?: number;
  };
}

interface NativeClasses {
  AddonSampler: {
    new (model: RawModel): RawSampler;
    acceptGrammarEvaluationStateToken(state: GrammarState, token: number): void;
  };
  AddonGrammar: new (gbnf: string, options: { rootRuleName: string }) => Grammar;
  AddonGrammarEvaluationState: new (model: RawModel, grammar: Grammar) => GrammarState;
}

/** Throws EngineError: `overloaded` if the model needs more memory than `maxMemoryBytes`, or its file is not sound. */
export async function openModel(options: ModelOptions): Promise<Binding> {
  await checkFile(options.modelPath);
  const info = await readGgufFileInfo(options.modelPath);
  const facts = info.architectureMetadata as ArchitectureFacts;
  const window = Math.min(
    options.contextSize ?? defaultContextSize,
    facts.context_length ?? defaultContextSize,
  );
  const { size } = await stat(options.modelPath);
  const memoryBytes = size * info.splicedParts + toCacheBytes(facts, window * options.sequences);
  if (options.maxMemoryBytes !== null && memoryBytes > options.maxMemoryBytes)
    throw new EngineError(
      'overloaded',
      `The model needs ${toMib(memoryBytes)} MiB for weights and cache, but only ${toMib(options.maxMemoryBytes)} MiB are allowed.`,
    );

  const llama = await startLlama(options);
  const batchSize = Math.min(llama.gpu === false ? cpuBatchTokens : gpuBatchTokens, window);
  const model = await llama.loadModel({
    modelPath: options.modelPath,
    // On the CPU the weights are rearranged in memory; mapped, they would be there twice.
    useMmap: llama.gpu !== false,
  });
  const isOnGpu = model.gpuLayers >= model.fileInsights.totalLayers;
  const threads = options.threads ?? (isOnGpu ? gpuThreads : llama.maxThreads);
  const rawModel = (model as unknown as { _model: RawModel })._model;
  const wrapped = await model.createContext({
    sequences: options.sequences,
    contextSize: window,
    batchSize,
    threads,
    // On the CPU, flash attention rounds differently for short and long batches, so that the same prompt gave other
    // logits when it was read in other pieces. Without it, all splits into pieces of two or more tokens agree.
    flashAttention: llama.gpu === false ? false : 'auto',
  });
  const context = (wrapped as unknown as { _ctx: RawContext })._ctx;
  if (llama.gpu !== false) await warmUp(context, rawModel, batchSize);

  return {
    context,
    model: rawModel,
    chatTemplate: readChatTemplate(info),
    vocabularySize: info.metadata.tokenizer.ggml.tokens.length,
    window,
    sequences: options.sequences,
    batchSize,
    threads,
    memoryBytes,
    gpu: llama.gpu,
    ...createSamplerPool(llama, rawModel),
  };
}

/** Neither the package's parser nor llama.cpp bounds what it takes from a file. */
async function checkFile(path: string): Promise<void> {
  try {
    await checkModelFiles(path);
  } catch (error) {
    if (!(error instanceof GgufError)) throw error;
    const message = `The file of the model ${error.message}.`;
    throw new EngineError('unavailable', message, { code: 'invalid_model_file' });
  }
}

async function startLlama(options: ModelOptions): Promise<Llama> {
  // CUDA reads it when it is loaded. The server's machines may have the other GPUs.
  if (options.device !== null) process.env.CUDA_VISIBLE_DEVICES = options.device;
  const kernels = options.gpu === 'auto' ? options.kernels : null;
  const llama = await getLlama({
    build: 'never',
    skipDownload: true,
    gpu: kernels === null ? options.gpu : false,
    maxThreads: 1,
    logLevel: LlamaLogLevel.error,
  });
  if (kernels !== null) loadKernels(llama, kernels);
  // The package's own default is at least four threads. With more threads than free cores the model was up to
  // 400 times slower, because the threads spin at their barrier.
  llama.maxThreads = options.threads ?? toThreadCount(llama.cpuMathCores);
  return llama;
}

/** The members of node-llama-cpp's class that say what it runs on. */
interface WithBackends {
  _bindings: {
    /** Loads the libraries of a folder. */
    loadBackends(folder: string): void;
    getGpuType(): Llama['gpu'] | undefined;
    getSupportsGpuOffloading(): boolean;
    getGpuSupportsMmap(): boolean;
  };
  _gpu: Llama['gpu'];
  _supportsGpuOffloading: boolean;
  _gpuSupportsMmap: boolean;
}

/** Adds kernels to an instance that was started for the CPU. The package has no option for a library of one's own. */
function loadKernels(llama: Llama, file: string): void {
  const inner = llama as unknown as WithBackends;
  inner._bindings.loadBackends(dirname(file));
  inner._gpu = inner._bindings.getGpuType() ?? false;
  inner._supportsGpuOffloading = inner._bindings.getSupportsGpuOffloading();
  inner._gpuSupportsMmap = inner._bindings.getGpuSupportsMmap();
  if (inner._gpu === false)
    throw new EngineError('unavailable', `The CUDA kernels in ${file} could not be loaded.`);
}

function readChatTemplate(info: GgufFileInfo): string | null {
  const template = (info.metadata.tokenizer as { chat_template?: unknown }).chat_template;
  return typeof template === 'string' ? template : null;
}

type SamplerPool = Pick<
  Binding,
  'takeSampler' | 'returnSampler' | 'parseGrammar' | 'createGrammarState' | 'acceptInGrammar'
>;

function createSamplerPool(llama: Llama, model: RawModel): SamplerPool {
  const native = (llama as unknown as { _bindings: NativeClasses })._bindings;
  // Each sampler holds candidates for the whole vocabulary in memory that the garbage collector can't see, so
  // samplers are reused. There are never more of them than sequences.
  const idle: RawSampler[] = [];
  return {
    takeSampler(config) {
      const sampler = idle.pop() ?? new native.AddonSampler(model);
      // A sampler whose seed does not change would continue its old random sequence.
      sampler.applyConfig({ temperature: 1, seed: (config.seed ^ 1) >>> 0 });
      sampler.applyConfig(config);
      return sampler;
    },
    returnSampler(sampler) {
      idle.push(sampler);
    },
    parseGrammar: (gbnf) => new native.AddonGrammar(gbnf, { rootRuleName: 'root' }),
    // Each choice starts a new state. Copying another choice's state costs more if many texts may come first:
    // for an enum of 2,000 values, 188 ms to copy and 15 ms to start anew.
    createGrammarState: (grammar) => new native.AddonGrammarEvaluationState(model, grammar),
    acceptInGrammar(state, token) {
      native.AddonSampler.acceptGrammarEvaluationStateToken(state, token);
    },
  };
}

/**
 * Runs a full batch and a single token, as requests will. A GPU driver that is too old for the package's kernels shows
 * only when they run, and then it ends the process: better while loading than during a request.
 */
async function warmUp(context: RawContext, model: RawModel, batchSize: number): Promise<void> {
  const token = Math.max(model.tokenBos(), 0);
  const last = batchSize - 1;
  for (const [position, count] of [
    [0, last],
    [last, 1],
  ] as const) {
    context.initBatch(count);
    context.addToBatch(0, position, new Uint32Array(count).fill(token), Uint32Array.of(count - 1));
    await context.decodeBatch();
  }
  context.disposeSequence(0);
}

/** Leaves one core free for the API process, which shares the machine. */
export function toThreadCount(physicalCores: number): number {
  return physicalCores <= 2 ? 1 : Math.min(physicalCores - 1, 8);
}

/** Bytes of the key-value cache: 16-bit keys and values for every layer. */
function toCacheBytes(facts: ArchitectureFacts, tokens: number): number {
  const heads = first(facts.attention?.head_count) ?? 1;
  const sharedHeads = first(facts.attention?.head_count_kv) ?? heads;
  const headLength = (facts.embedding_length ?? 0) / heads;
  const perHead =
    (facts.attention?.key_length ?? headLength) + (facts.attention?.value_length ?? headLength);
  return tokens * (facts.block_count ?? 0) * sharedHeads * perHead * 2;
}

function first(value: number | number[] | undefined): number | undefined {
  return Array.isArray(value) ? Math.max(...value) : value;
}

function toMib(bytes: number): number {
  return Math.ceil(bytes / 2 ** 20);
}
