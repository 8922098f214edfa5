// The parts that requests are answered with once a model is loaded, and what a request brings along.

import { type EngineChunk, EngineError, type Usage } from '#inference/engine.ts';
import type { Scorer } from '#inference/engines/local/child/output/logprobs.ts';
import type { ChatTemplate } from '#inference/engines/local/child/prompt/chat-template.ts';
import type { Binding, ModelOptions } from './binding.ts';
import type { Scheduler } from './scheduler.ts';
import type { Vocabulary } from './vocabulary.ts';

export interface CoreOptions extends ModelOptions {
  standIn: boolean;
  /** Plain prompts begin with the model's start token even if its file does not ask for it. */
  startsText: boolean;
  /** Used when a request names none. */
  temperature: number;
  limits: RequestLimits;
}

export interface RequestLimits {
  /** Choices over all prompts of one request. */
  choices: number;
  /** Tokens that all choices of one request may generate together. */
  completionTokens: number;
  /** Prompt tokens that may wait, over all requests. */
  waitingPromptTokens: number;
}

/** What a request needs besides its body. */
export interface RequestContext {
  caller: string;
  priority: number;
  contextWindow: number;
  /** GBNF that the answer must follow from its first token; null for none. */
  grammar: string | null;
  /** GBNF that a tool call must follow once the model opens one; null for none. */
  lazyGrammar: string | null;
}

export interface RequestOutput {
  /** The first of its sequences runs. */
  started(): void;
  chunk(chunk: EngineChunk, soFar: Usage): void;
  /** A token was generated; its text may come later, or never. */
  counted?(soFar: Usage): void;
  /** Nothing comes after it. */
  ended(): void;
  failed(error: Error): void;
}

export interface Core {
  readonly binding: Binding;
  readonly vocabulary: Vocabulary;
  readonly template: ChatTemplate;
  readonly scorer: Scorer;
  readonly scheduler: Scheduler;
  readonly options: CoreOptions;
  waitingPromptTokens: number;
}

export function rejected(message: string, code: string, param: string): EngineError {
  return new EngineError('rejected', message, { code, param });
}
