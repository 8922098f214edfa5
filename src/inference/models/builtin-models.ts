// The built-in models, whose ids and order are fixed by seed 1.4. Only data: the catalog is built from it and the
// configuration.

import type { ModelKind } from '#inference/pooling.ts';
import type { ThinkTags } from '#inference/think-tags.ts';
import type { Vocabulary } from './tokens.ts';

/** US dollars per million tokens. */
export interface Price {
  readonly input: number;
  readonly output: number;
  /** Price of prompt tokens that the engine had cached. Default: the price of input. */
  readonly cached?: number;
}

export type Input = 'text' | 'image';

export interface CatalogEntry {
  readonly id: string;
  readonly ownedBy: string;
  /** Unix seconds; constant per model. */
  readonly created: number;
  readonly contextWindow: number;
  /** Maximum tokens of one response; null if only the context window limits it. */
  readonly maxOutputTokens: number | null;
  /** Tokenizer and chat template that count the model's prompts; `other` if only its backend can count them. */
  readonly vocabulary: Vocabulary | 'other';
  readonly price: Price;
  /** Repositories of the real weights on a model hub: quantised for one machine, and unquantised. */
  readonly weights: { readonly gguf: string | null; readonly safetensors: string | null };
  /** Requests that need more context than `above` are served by the model `to`. */
  readonly contextFallback: { readonly above: number; readonly to: string } | null;
  /** Whether a broken stream is continued on another backend; null if only backends known to support it do so. */
  readonly continueStreams: boolean | null;
  /** A chat's maximum of tokens that doesn't fit is reduced, not refused. */
  readonly fitMaxTokens: boolean;
  readonly thinkTags: ThinkTags;
  /** What its messages may contain, as far as the operator has declared. Requests are not checked against it. */
  readonly input: readonly Input[];
  /** What the model was made for; null if only its backends know. */
  readonly kind: ModelKind | null;
  /** Smallest number of dimensions that its embeddings can be cut to; null if they can't be cut. */
  readonly minDimensions: number | null;
  /** False if the model can be requested by name but is not in the list. */
  readonly listed: boolean;
}

type KnownModel = Pick<CatalogEntry, 'id' | 'ownedBy' | 'created' | 'price' | 'weights'> &
  Partial<CatalogEntry>;

/** Names reserved for the built-in stand-in model; no other backend may use them. */
export const standInNames: readonly string[] = ['builtin', 'stand-in'];

/** What the models of a family share. */
const hermes3 = {
  ownedBy: 'NousResearch',
  created: 1723680000,
  vocabulary: 'llama3-chatml',
} as const;
const hermes405b = {
  ...hermes3,
  price: { input: 0.8, output: 0.8 },
  weights: {
    gguf: 'NousResearch/Hermes-3-Llama-3.1-405B-GGUF',
    safetensors: 'NousResearch/Hermes-3-Llama-3.1-405B-FP8',
  },
} as const;
const llama31 = { ownedBy: 'meta-llama', created: 1721692800, vocabulary: 'llama3' } as const;

const known: readonly KnownModel[] = [
  {
    id: 'deepseek-coder-v2-lite-instruct',
    ownedBy: 'deepseek-ai',
    created: 1718582400,
    price: { input: 0.04, output: 0.12 },
    weights: {
      gguf: 'bartowski/DeepSeek-Coder-V2-Lite-Instruct-GGUF',
      safetensors: 'deepseek-ai/DeepSeek-Coder-V2-Lite-Instruct',
    },
  },
  {
    id: 'dracarys2-72b-instruct',
    ownedBy: 'abacusai',
    created: 1727654400,
    price: { input: 0.2, output: 0.3 },
    weights: {
      gguf: 'bartowski/Dracarys2-72B-Instruct-GGUF',
      safetensors: 'abacusai/Dracarys2-72B-Instruct',
    },
  },
  {
    id: 'hermes3-405b',
    ...hermes405b,
    // "18K" in seed 1.5 and 8.
    contextFallback: { above: 18_000, to: 'hermes-3-llama-3.1-405b-fp8-128k' },
  },
  {
    id: 'hermes3-405b-fp8-128k',
    ...hermes405b,
  },
  {
    id: 'hermes3-70b',
    ...hermes3,
    price: { input: 0.12, output: 0.3 },
    weights: {
      gguf: 'NousResearch/Hermes-3-Llama-3.1-70B-GGUF',
      safetensors: 'NousResearch/Hermes-3-Llama-3.1-70B',
    },
  },
  {
    id: 'hermes3-8b',
    ...hermes3,
    price: { input: 0.025, output: 0.04 },
    weights: {
      gguf: 'NousResearch/Hermes-3-Llama-3.1-8B-GGUF',
      safetensors: 'NousResearch/Hermes-3-Llama-3.1-8B',
    },
  },
  {
    id: 'lfm-40b',
    ownedBy: 'LiquidAI',
    created: 1727654400,
    contextWindow: 65_536,
    price: { input: 0.15, output: 0.15 },
    weights: { gguf: null, safetensors: 'LiquidAI/LFM-40B' },
  },
  {
    id: 'llama3.1-405b-instruct-fp8',
    ...llama31,
    price: { input: 0.8, output: 0.8 },
    weights: {
      gguf: 'bartowski/Meta-Llama-3.1-405B-Instruct-GGUF',
      safetensors: 'meta-llama/Llama-3.1-405B-Instruct-FP8',
    },
  },
  {
    id: 'llama3.1-70b-instruct-fp8',
    ...llama31,
    price: { input: 0.12, output: 0.3 },
    weights: {
      gguf: 'bartowski/Meta-Llama-3.1-70B-Instruct-GGUF',
      safetensors: 'meta-llama/Llama-3.1-70B-Instruct',
    },
  },
  {
    id: 'llama3.1-8b-instruct',
    ...llama31,
    price: { input: 0.025, output: 0.04 },
    weights: {
      gguf: 'bartowski/Meta-Llama-3.1-8B-Instruct-GGUF',
      safetensors: 'meta-llama/Llama-3.1-8B-Instruct',
    },
  },
  {
    id: 'llama3.2-3b-instruct',
    ownedBy: 'meta-llama',
    created: 1727222400,
    vocabulary: 'llama3',
    price: { input: 0.015, output: 0.025 },
    weights: {
      gguf: 'bartowski/Llama-3.2-3B-Instruct-GGUF',
      safetensors: 'meta-llama/Llama-3.2-3B-Instruct',
    },
  },
  {
    id: 'llama3.1-nemotron-70b-instruct',
    ownedBy: 'nvidia',
    created: 1728950400,
    vocabulary: 'llama3',
    price: { input: 0.12, output: 0.3 },
    weights: {
      gguf: 'bartowski/Llama-3.1-Nemotron-70B-Instruct-HF-GGUF',
      safetensors: 'nvidia/Llama-3.1-Nemotron-70B-Instruct-HF',
    },
  },
  {
    id: 'hermes-3-llama-3.1-405b-fp8-128k',
    ...hermes405b,
    listed: false,
  },
];

/** Properties of a model that is not said to differ. */
export const entryDefaults = {
  contextWindow: 131_072,
  vocabulary: 'other',
  maxOutputTokens: null,
  contextFallback: null,
  continueStreams: null,
  kind: null,
  minDimensions: null,
  fitMaxTokens: false,
  thinkTags: 'split',
  input: ['text'],
  listed: true,
} as const satisfies Partial<CatalogEntry>;

export const builtinModels: readonly CatalogEntry[] = known.map((model) => ({
  ...entryDefaults,
  ...model,
}));
