// The messages between the engine (parent process) and the model's child process, and the types they carry. All
// chunks of one batch travel in one message. Neither process imports anything else of the other.

import type { EngineFailure, Task } from '#inference/engine.ts';
import type { ModelKind, PoolingTask, TokenizeTask, Tokens } from '#inference/pooling.ts';
import type { EngineChunk, Usage } from '#inference/wire/response.ts';

export type ToChild =
  | { kind: 'load'; options: ChildOptions }
  | { kind: 'start'; id: number; task: Task; context: RequestContext }
  | { kind: 'pool'; id: number; task: PoolingTask; context: PoolingContext }
  | { kind: 'cancel'; id: number }
  | { kind: 'ask'; id: number; question: Question }
  | { kind: 'ping' }
  | { kind: 'close' };

export type ToParent =
  | ({ kind: 'ready' } & ModelInfo)
  | { kind: 'unable'; failure: WireFailure }
  | { kind: 'batch'; events: RequestEvent[]; load: ChildLoad }
  | { kind: 'answer'; id: number; answer: Answer }
  | { kind: 'failed'; id: number; failure: WireFailure }
  | { kind: 'pong' };

/** What a child can be asked without computing anything by the model. */
export type Question =
  | { kind: 'count'; task: Task }
  | { kind: 'tokenize'; task: TokenizeTask }
  | { kind: 'detokenize'; tokens: readonly number[] };

/** A count, tokens, or the text of tokens. */
export type Answer = number | Tokens | string;

/** How the child opens a model file. */
export interface ModelOptions {
  modelPath: string;
  gpu: 'auto' | false;
  /** The library with GPU kernels; null for none. */
  kernels: string | null;
  /** The only GPU to use, as CUDA_VISIBLE_DEVICES names it; null for any. */
  device: string | null;
  /** Null chooses by the machine's cores. */
  threads: number | null;
  /** Maximum number of choices generated at the same time. */
  sequences: number;
  /** Tokens per sequence. Null means the model's own window, up to `defaultContextSize`. */
  contextSize: number | null;
  /** Maximum memory of weights and cache; the child refuses to load a model that needs more. Null for no bound. */
  maxMemoryBytes: number | null;
}

export interface ChildOptions extends ModelOptions {
  /** The model stands in for a larger one and keeps that model's window. */
  standIn: boolean;
  /** Plain prompts begin with the model's start token even if its file does not ask for one. */
  startsText: boolean;
  /** Temperature of a request that sets none. */
  temperature: number;
  limits: RequestLimits;
}

export interface RequestLimits {
  /** Choices of one request, over all its prompts. */
  maxChoices: number;
  /** Tokens that all choices of one request may generate together. */
  maxCompletionTokens: number;
  /** Prompt tokens that may wait to be read, over all requests. */
  maxWaitingPromptTokens: number;
}

export const defaultLimits: RequestLimits = {
  maxChoices: 1024,
  maxCompletionTokens: 1_000_000,
  maxWaitingPromptTokens: 1_000_000,
};

/** What the child needs to know about a request besides its body. */
export interface RequestContext {
  caller: string;
  priority: number;
  contextWindow: number;
  /** GBNF that the output must follow from its first token; null for none. */
  grammar: string | null;
  /** GBNF that a tool call must follow once the model opens one; null for none. */
  lazyGrammar: string | null;
}

export type PoolingContext = Pick<RequestContext, 'caller' | 'priority'>;

/** What the child found out by loading the model. */
export interface ModelInfo {
  modelKind: ModelKind;
  /** Tokens that one sequence can hold. */
  window: number;
  threads: number;
  /** Memory of weights and cache. */
  memoryBytes: number;
  /** The GPU interface in use; false for the CPU alone. */
  gpu: 'cuda' | 'vulkan' | 'metal' | false;
}

export type RequestEvent =
  /** The first sequence of the request runs. */
  | { kind: 'started'; id: number }
  | { kind: 'chunk'; id: number; chunk: EngineChunk; soFar: Usage }
  /** The vector of one text, or the score of one document as a vector of one element. */
  | { kind: 'vector'; id: number; index: number; vector: Float32Array; soFar: Usage }
  /** Tokens were generated without a chunk: their text is held back, or belongs to a candidate of `best_of`. */
  | { kind: 'usage'; id: number; soFar: Usage }
  | { kind: 'ended'; id: number };

/** The sequences in use and the choices that wait for one. */
export interface ChildLoad {
  running: number;
  waiting: number;
}

/** An EngineError as a message. */
export interface WireFailure {
  failure: EngineFailure;
  message: string;
  code: string | null;
  param: string | null;
}

/** Default of the choices generated at the same time. */
export const defaultSequences = 8;

/** Default tokens of a sequence. A larger window takes memory that few requests use. */
export const defaultContextSize = 8192;

/** The same for embedding and rerank models, which read a text in one batch: memory grows with the longest one. */
export const defaultPooledTokens = 2048;

/** The tags around a tool call. The parent's grammars prescribe them; the child looks for them in the output. */
export const toolCallOpening = '<tool_call>';
export const toolCallClosing = '</tool_call>';
