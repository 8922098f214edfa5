// The part of llama.cpp's addon that serves requests, and the model behind it. `native.ts` loads it.

import type { ModelInfo } from '#inference/engines/local/protocol.ts';

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

/** The position of one choice in its grammar. */
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
  /** Resolves to -1 if no token is possible. */
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
  /** The vector of sequence 0 after a batch, of a context that was opened for embeddings or for ranking. */
  getEmbedding(inputTokens: number, maxLength?: number): Float64Array;
}

export interface RawModel {
  tokenize(text: string, parseSpecial: boolean): Uint32Array;
  detokenize(tokens: Uint32Array, writesSpecial: boolean): string;
  getTokenString(token: number): string;
  getTokenAttributes(token: number): number;
  isEogToken(token: number): boolean;
  getVocabularyType(): number;
  shouldPrependBosToken(): boolean;
  shouldAppendEosToken(): boolean;
  /** Negative if there is none. */
  tokenBos(): number;
  tokenEos(): number;
  sepToken(): number;
}

export interface Binding extends Readonly<ModelInfo> {
  readonly context: RawContext;
  readonly model: RawModel;
  readonly chatTemplate: string | null;
  /** How a rerank model reads a query and a document; null if it takes them one after the other. */
  readonly rerankTemplate: string | null;
  /** True if the model's scores are probabilities already. */
  readonly scoresAreProbabilities: boolean;
  readonly vocabularySize: number;
  readonly sequences: number;
  /** Maximum tokens of one batch. */
  readonly batchSize: number;
  /** Returns a sampler without memory of earlier tokens. */
  takeSampler(config: SamplerConfig): RawSampler;
  /** Makes a sampler available to the next choice. Its last user must not touch it again. */
  returnSampler(sampler: RawSampler): void;
  /** Throws if the grammar can't be parsed. */
  parseGrammar(gbnf: string): Grammar;
  createGrammarState(grammar: Grammar): GrammarState;
  /** Advances a grammar over a token that was generated before the grammar was switched on. */
  acceptInGrammar(state: GrammarState, token: number): void;
  /** Frees the memory of weights and cache. No batch may run, and nothing else may be called afterwards. */
  close(): Promise<void>;
}
