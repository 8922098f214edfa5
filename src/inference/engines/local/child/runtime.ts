// The parts of a loaded model that requests are served with, and where a request's output goes.

import type { Task } from '#inference/engine.ts';
import type { Scorer } from '#inference/engines/local/child/output/logprobs.ts';
import type { ChatTemplate } from '#inference/engines/local/child/prompt/chat-template.ts';
import type { ChildOptions, RequestContext } from '#inference/engines/local/protocol.ts';
import type { EngineChunk, Usage } from '#inference/wire/response.ts';
import type { Binding } from './binding.ts';
import type { Scheduler } from './scheduler.ts';
import type { Vocabulary } from './vocabulary.ts';

export interface ModelRuntime {
  readonly binding: Binding;
  readonly vocabulary: Vocabulary;
  readonly template: ChatTemplate;
  readonly scorer: Scorer;
  readonly scheduler: Scheduler;
  readonly options: ChildOptions;
  /** Prompt tokens of all requests that have no sequence yet. */
  waitingPromptTokens: number;
}

export interface ChildRequest {
  readonly task: Task;
  readonly context: RequestContext;
  readonly output: RequestOutput;
}

export interface RequestOutput {
  /** Called when a sequence of the request starts. */
  started(): void;
  chunk(chunk: EngineChunk, soFar: Usage): void;
  /** Called for each token generated. The token's text may follow later, or never. */
  counted?(soFar: Usage): void;
  /** Called last, unless the request fails. */
  ended(): void;
  failed(error: Error): void;
}
