// Opens a GGUF file with llama.cpp, within the memory that is allowed, on the GPU as far as it fits there.

import { stat } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { EngineError } from '#inference/engine.ts';
import {
  defaultContextSize,
  defaultPooledTokens,
  type ModelOptions,
} from '#inference/engines/local/protocol.ts';
import {
  checkModelFiles,
  GgufError,
  type GgufHeader,
  type Metadata,
  toModelKind,
} from '#inference/gguf-check.ts';
import type { ModelKind } from '#inference/pooling.ts';
import type { Binding, RawContext, RawModel, RawSampler } from './binding.ts';
import { type ContextParameters, type Native, startNative } from './native.ts';

/** A batch reserves memory for each of its tokens. Longer batches are no faster on a CPU. */
const cpuBatchTokens = 128;
const gpuBatchTokens = 512;

/**
 * Threads of a model whose layers are all on the GPU. On an H200 with 16 cores, 1, 2, 4 and 8 threads differed by less
 * than their rounds did (1B: 522 to 546 tokens/s with one stream, 1,338 to 1,497 with eight), so few are enough.
 */
const gpuThreads = 2;

/**
 * `start` is called once the file was checked. Throws EngineError: `overloaded` if the model needs more memory than
 * `maxMemoryBytes`, or its file is not sound.
 */
export async function openModel(options: ModelOptions, start = startNative): Promise<Binding> {
  const header = await checkFile(options.modelPath);
  const { parts, metadata } = header;
  const facts = readFacts(metadata);
  const modelKind = requireKind(header);
  const isChat = modelKind === 'chat';
  const defaultWindow = isChat ? defaultContextSize : defaultPooledTokens;
  const window = Math.min(options.contextSize ?? defaultWindow, facts.window);
  // llama.cpp's addon returns the vector of the first sequence only.
  const sequences = isChat ? options.sequences : 1;
  const { size } = await stat(options.modelPath);
  const memoryBytes = size * parts + toCacheBytes(facts, window * sequences);
  if (options.maxMemoryBytes !== null && memoryBytes > options.maxMemoryBytes)
    throw new EngineError(
      'overloaded',
      `The model needs ${toMib(memoryBytes)} MiB for weights and cache, but only ${toMib(options.maxMemoryBytes)} MiB are allowed.`,
    );

  // CUDA reads it when it is loaded. The server's machines may have the other GPUs.
  if (options.device !== null) process.env.CUDA_VISIBLE_DEVICES = options.device;
  const native = await start(options.gpu === 'auto' ? options.kernels : null);
  const gpu = options.gpu === 'auto' ? (native.getGpuType() ?? false) : false;
  const maxBatchTokens = gpu === false ? cpuBatchTokens : gpuBatchTokens;
  // Each token of a pooled text may attend to all others, so that it is read in one batch.
  const batchSize = isChat ? Math.min(maxBatchTokens, window) : window;
  const parameters: ContextParameters = {
    contextSize: Math.ceil((window * sequences) / cellBlock) * cellBlock,
    // With a sliding window, a full batch needs one more.
    batchSize: Math.max(batchSize, sequences) + (facts.slidingWindow > 0 ? 1 : 0),
    sequences,
    threads: options.threads ?? toThreadCount(countCores(native)),
    // On the CPU, flash attention rounds differently for short and long batches, so that the same prompt gave other
    // logits when it was read in other pieces. Without it, all splits into pieces of two or more tokens agree.
    // A pooled text is read in one piece, and without flash attention its memory grows with the square of its length.
    flashAttention: gpu === false && isChat ? false : 'auto',
    embeddings: !isChat,
    ranking: modelKind === 'rerank',
  };
  const gpuLayers =
    gpu === false
      ? 0
      : await countGpuLayers(native, options.modelPath, { layers: facts.layers + 1, parameters });
  if (gpuLayers > facts.layers) parameters.threads = options.threads ?? gpuThreads;
  // On the CPU the weights are rearranged in memory; mapped, they would be there twice.
  const model = new native.AddonModel(options.modelPath, { gpuLayers, useMmap: gpu !== false });
  if (!(await model.init())) throw unableToLoad('the model');
  const context = new native.AddonContext(model, parameters);
  if (!(await context.init())) throw unableToLoad('the context of the model');
  if (gpu !== false) await warmUp(context, model, batchSize);

  return {
    context,
    model,
    modelKind,
    chatTemplate: facts.chatTemplate,
    rerankTemplate: facts.rerankTemplate,
    scoresAreProbabilities: probabilityArchitectures.includes(facts.architecture),
    vocabularySize: metadata.get('tokenizer.ggml.tokens')?.count ?? 0,
    window,
    sequences,
    batchSize,
    threads: parameters.threads,
    memoryBytes,
    gpu,
    ...createSamplerPool(native, model),
    // The context refers to the model.
    close: () => context.dispose().then(() => model.dispose()),
  };
}

const unableToLoad = (what: string) =>
  new EngineError('unavailable', `llama.cpp could not load ${what}.`);

/** llama.cpp does not bound what it takes from a file. */
async function checkFile(path: string): Promise<GgufHeader> {
  try {
    return await checkModelFiles(path);
  } catch (error) {
    if (!(error instanceof GgufError)) throw error;
    const message = `The file of the model ${error.message}.`;
    throw new EngineError('unavailable', message, { code: 'invalid_model_file' });
  }
}

/** The cells of the cache are counted in blocks. */
const cellBlock = 256;

type Facts = ReturnType<typeof readFacts>;

function readFacts(metadata: Metadata) {
  const architecture = metadata.get('general.architecture')?.value;
  const number = (name: string) => {
    const value = metadata.get(`${architecture}.${name}`)?.value;
    return typeof value === 'number' ? value : undefined;
  };
  const text = (name: string) => {
    const value = metadata.get(name)?.value;
    return typeof value === 'string' ? value : null;
  };
  const heads = number('attention.head_count') ?? 1;
  const headLength = (number('embedding_length') ?? 0) / heads;
  const window = number('context_length') ?? defaultContextSize;
  const sliding = number('attention.sliding_window') ?? 0;
  return {
    window,
    slidingWindow: sliding < window ? sliding : 0,
    layers: number('block_count') ?? 0,
    sharedHeads: number('attention.head_count_kv') ?? heads,
    keyLength: number('attention.key_length') ?? headLength,
    valueLength: number('attention.value_length') ?? headLength,
    architecture: String(architecture),
    chatTemplate: text('tokenizer.chat_template'),
    rerankTemplate: text('tokenizer.chat_template.rerank'),
  };
}

/** Their graphs end in a softmax. */
const probabilityArchitectures: readonly string[] = ['qwen3', 'qwen3vl'];

function requireKind(header: GgufHeader): ModelKind {
  const kind = toModelKind(header);
  if (kind !== null) return kind;
  const message = 'The file of the model names no pooling, so it can neither generate nor embed.';
  throw new EngineError('unavailable', message, { code: 'invalid_model_file' });
}

type SamplerPool = Pick<
  Binding,
  'takeSampler' | 'returnSampler' | 'parseGrammar' | 'createGrammarState' | 'acceptInGrammar'
>;

function createSamplerPool(native: Native, model: RawModel): SamplerPool {
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

/** llama.cpp counts all cores of the computer, also those that this process is not allowed to use. */
const countCores = (native: Native) =>
  Math.min(Math.floor(native.getMathCores()), availableParallelism());

/**
 * Leaves one core free for the API process, which shares the machine. With more threads than free cores the model was
 * up to 400 times slower, because the threads spin at their barrier.
 */
export function toThreadCount(physicalCores: number): number {
  return physicalCores <= 2 ? 1 : Math.min(physicalCores - 1, 8);
}

/** Bytes of the key-value cache: 16-bit keys and values for every layer. */
const toCacheBytes = (facts: Facts, tokens: number) =>
  tokens * facts.layers * facts.sharedHeads * (facts.keyLength + facts.valueLength) * 2;

function toMib(bytes: number): number {
  return Math.ceil(bytes / 2 ** 20);
}

/** Memory that stays free, because the estimate is not exact: 8 % of the GPU's, at most 1.6 GiB. */
const toReserve = (totalBytes: number) => Math.min(totalBytes * 0.08, 1.6 * 2 ** 30);

/**
 * Returns the largest number of layers, up to `layers`, that fits beside what the GPU holds already. llama.cpp lays the
 * model and its context out without allocating them, and says how much memory they would take.
 */
async function countGpuLayers(
  native: Native,
  path: string,
  { layers, parameters }: { layers: number; parameters: ContextParameters },
): Promise<number> {
  const { total, used } = native.getGpuVramInfo();
  const freeBytes = total - used - toReserve(total);
  const fits = async (count: number) =>
    (await measure(native, path, { gpuLayers: count, parameters })) <= freeBytes;
  if (await fits(layers)) return layers;
  let [low, high] = [0, layers];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (await fits(middle)) low = middle;
    else high = middle;
  }
  return low;
}

/** Bytes on the GPU. What can't be laid out does not fit. */
async function measure(
  native: Native,
  path: string,
  { gpuLayers, parameters }: { gpuLayers: number; parameters: ContextParameters },
): Promise<number> {
  const model = new native.AddonModel(path, { gpuLayers, useMmap: true, noAlloc: true });
  try {
    if (!(await model.init())) return Infinity;
    const context = new native.AddonContext(model, parameters);
    try {
      if (!(await context.init())) return Infinity;
      return model.getMemoryBreakdown().gpuVram + context.getMemoryBreakdown().gpuVram;
    } finally {
      await context.dispose();
    }
  } finally {
    await model.dispose();
  }
}
