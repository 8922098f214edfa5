// The only file that touches node-llama-cpp. Its public API can't batch without gaps, score prompts or
// copy sequences, so we use the binding underneath, which is internal: the version is pinned and the
// part we use is declared here.

import { stat } from 'node:fs/promises';
import { getLlama, LlamaLogLevel, readGgufFileInfo } from 'node-llama-cpp';
import { EngineError } from '#inference/engine.ts';
import { defaultContextSize } from '#inference/engines/local/child/prompt/context-window.ts';
import type { Loaded } from '#inference/engines/local/protocol.ts';

export interface ModelOptions {
  modelPath: string;
  gpu: 'auto' | false;
  /** Null chooses from the machine's cores. */
  threads: number | null;
  sequences: number;
  /** Tokens per sequence. Null takes the model's own window, up to 8,192. */
  contextSize: number | null;
  /** Refuse to load when weights and cache need more. Null for no limit. */
  memoryLimitBytes: number | null;
}

export interface SamplerConfig {
  temperature: number;
  seed: number;
  topP?: number;
  topK?: number;
  minP?: number;
  repeatPenalty?: number;
  repeatPenaltyTokens?: Uint32Array;
  repeatPenaltyMaxTokens?: number;
  tokenBiasKeys?: Uint32Array;
  tokenBiasValues?: Float32Array;
  grammarEvaluationState?: GrammarState;
}

export interface RawSampler {
  applyConfig(config: SamplerConfig): void;
}

export type Grammar = { readonly grammar: never };

/** How far one choice has come in its grammar. */
export type GrammarState = { readonly grammarState: never };

type LogitFilter = [
  tokens: number[],
  includeMax: boolean,
  includeMin: boolean,
  includeSelected: boolean,
  includeTop: number,
];

export interface RawContext {
  initBatch(size: number): void;
  /** Returns, for each flagged token, the index under which its logits can be sampled. */
  addToBatch(
    sequence: number,
    position: number,
    tokens: Uint32Array,
    flagged: Uint32Array,
  ): Uint32Array;
  decodeBatch(): Promise<void>;
  /** -1 when no token is possible. */
  sampleToken(index: number, sampler: RawSampler): Promise<number>;
  sampleToken(
    index: number,
    sampler: RawSampler,
    probabilities: false,
    confidence: false,
    logits: true | LogitFilter,
    totalWeight: boolean,
  ): Promise<[token: number, undefined, undefined, logits: number[], totalWeight: number]>;
  disposeSequence(sequence: number): void;
  removeTokenCellsFromSequence(sequence: number, start: number, end: number): boolean;
  copySequenceStateFromOtherSequence(target: number, source: number): Promise<number>;
}

export interface RawModel {
  tokenize(text: string, parseSpecial: boolean): Uint32Array;
  getTokenString(token: number): string;
  getTokenAttributes(token: number): number;
  isEogToken(token: number): boolean;
  getVocabularyType(): number;
  shouldPrependBosToken(): boolean;
  tokenBos(): number;
  tokenEos(): number;
  detokenize(tokens: Uint32Array, special: boolean): string;
}

export interface Binding {
  readonly context: RawContext;
  readonly model: RawModel;
  readonly chatTemplate: string | null;
  readonly vocabularySize: number;
  /** Tokens one sequence can hold. */
  readonly window: number;
  readonly sequences: number;
  readonly batchSize: number;
  readonly threads: number;
  readonly memoryBytes: number;
  readonly gpu: Loaded['gpu'];
  /** A sampler that remembers nothing. */
  takeSampler(config: SamplerConfig): RawSampler;
  /** It may be given to another then. */
  returnSampler(sampler: RawSampler): void;
  /** Throws when the grammar can't be parsed. */
  parseGrammar(gbnf: string): Grammar;
  createGrammarState(grammar: Grammar): GrammarState;
  /** Moves the grammar on over a token that was generated before it was switched on. */
  acceptInGrammar(state: GrammarState, token: number): void;
}

/** A batch reserves memory for each of its tokens; on a CPU longer ones are no faster. */
const cpuBatchTokens = 128;
const gpuBatchTokens = 512;

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

interface Bindings {
  AddonSampler: {
    new (model: RawModel): RawSampler;
    acceptGrammarEvaluationStateToken(state: GrammarState, token: number): void;
  };
  AddonGrammar: new (gbnf: string, options: { rootRuleName: string }) => Grammar;
  AddonGrammarEvaluationState: new (model: RawModel, grammar: Grammar) => GrammarState;
}

export async function openModel(options: ModelOptions): Promise<Binding> {
  const info = await readGgufFileInfo(options.modelPath);
  const facts = info.architectureMetadata as ArchitectureFacts;
  const window = Math.min(
    options.contextSize ?? defaultContextSize,
    facts.context_length ?? defaultContextSize,
  );
  const { size } = await stat(options.modelPath);
  const memoryBytes = size * info.splicedParts + toCacheBytes(facts, window * options.sequences);
  if (options.memoryLimitBytes !== null && memoryBytes > options.memoryLimitBytes)
    throw new EngineError(
      'overloaded',
      `The model needs ${toMib(memoryBytes)} MiB for weights and cache, and ${toMib(options.memoryLimitBytes)} MiB are allowed.`,
    );

  const llama = await getLlama({
    build: 'never',
    skipDownload: true,
    gpu: options.gpu,
    maxThreads: 1,
    logLevel: LlamaLogLevel.error,
  });
  const threads = options.threads ?? toThreadCount(llama.cpuMathCores);
  // The package's own default is at least four threads. With more threads than free cores it was up to
  // 400 times slower here, because its barrier spins.
  llama.maxThreads = threads;
  const batchSize = Math.min(llama.gpu === false ? cpuBatchTokens : gpuBatchTokens, window);
  const model = await llama.loadModel({
    modelPath: options.modelPath,
    // On the CPU the weights are laid out anew in memory; mapped, they would be there twice.
    useMmap: llama.gpu !== false,
  });
  const context = await model.createContext({
    sequences: options.sequences,
    contextSize: window,
    batchSize,
    threads,
    // On the CPU, flash attention rounds differently for short and long batches, so that a prompt read
    // in other pieces gave other logits. Without it every split into pieces of two or more agrees.
    flashAttention: llama.gpu === false ? false : 'auto',
  });

  const raw = (model as unknown as { _model: RawModel })._model;
  const bindings = (llama as unknown as { _bindings: Bindings })._bindings;
  // Each holds a whole vocabulary of candidates that the garbage collector does not know of, so they are
  // used again; there are never more than sequences.
  const idleSamplers: RawSampler[] = [];
  const template = (info.metadata.tokenizer as { chat_template?: unknown }).chat_template;

  const rawContext = (context as unknown as { _ctx: RawContext })._ctx;
  if (llama.gpu !== false) await tryOut(rawContext, raw, batchSize);

  return {
    context: rawContext,
    model: raw,
    chatTemplate: typeof template === 'string' ? template : null,
    vocabularySize: info.metadata.tokenizer.ggml.tokens.length,
    window,
    sequences: options.sequences,
    batchSize,
    threads,
    memoryBytes,
    gpu: llama.gpu,
    takeSampler(config) {
      const sampler = idleSamplers.pop() ?? new bindings.AddonSampler(raw);
      // An unchanged seed would go on where it left off.
      sampler.applyConfig({ temperature: 1, seed: (config.seed ^ 1) >>> 0 });
      sampler.applyConfig(config);
      return sampler;
    },
    returnSampler(sampler) {
      idleSamplers.push(sampler);
    },
    parseGrammar: (gbnf) => new bindings.AddonGrammar(gbnf, { rootRuleName: 'root' }),
    // A copy of another choice's state would cost more where many texts may come first: 2,000 values of
    // an enum took 188 ms to copy and 15 ms to begin anew.
    createGrammarState: (grammar) => new bindings.AddonGrammarEvaluationState(raw, grammar),
    acceptInGrammar(state, token) {
      bindings.AddonSampler.acceptGrammarEvaluationStateToken(state, token);
    },
  };
}

/**
 * A whole batch and a single token, as requests will bring them. A driver that is too old for the package's
 * kernels is found out only by running them, and that ends the process: better now than with a request.
 */
async function tryOut(context: RawContext, model: RawModel, batchSize: number): Promise<void> {
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

/** One core stays free for the API process, which shares the machine. */
export function toThreadCount(physicalCores: number): number {
  return physicalCores <= 2 ? 1 : Math.min(physicalCores - 1, 8);
}

/** Keys and values in 16 bits for every layer. */
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
