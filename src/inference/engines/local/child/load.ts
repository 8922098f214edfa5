// Loads a model and everything that serves requests with it, in the calling process. It is all of the child but the
// messages, and what the benchmark compares the child with.

import { createScorer } from '#inference/engines/local/child/output/logprobs.ts';
import { createPooler, type Pooler } from '#inference/engines/local/child/pooling/pooler.ts';
import { createChatTemplate } from '#inference/engines/local/child/prompt/chat-template.ts';
import type { Answer, ChildOptions, Question } from '#inference/engines/local/protocol.ts';
import { answer } from './answers.ts';
import type { Binding } from './binding.ts';
import { wrongModelKind } from './errors.ts';
import { openModel } from './open-model.ts';
import { startRequest } from './request.ts';
import type { ChildRequest, ModelRuntime } from './runtime.ts';
import { createScheduler, type Scheduler } from './scheduler.ts';
import { createVocabulary, type Vocabulary } from './vocabulary.ts';

export interface LoadedModel {
  readonly binding: Binding;
  readonly scheduler: Scheduler;
  readonly pooler: Pooler;
  /** Returns a function that cancels the request. */
  start(request: ChildRequest): () => void;
  answer(question: Question): Promise<Answer>;
}

/** `afterBatch` is called when every sequence of a batch has its token, and when all work has ended. */
export async function loadModel(
  options: ChildOptions,
  afterBatch: () => void,
): Promise<LoadedModel> {
  const binding = await openModel(options);
  const vocabulary = createVocabulary(
    binding.model,
    binding.vocabularySize,
    options.startsText,
    () => new Promise((resolve) => setImmediate(resolve)),
  );
  const runtime: ModelRuntime = {
    binding,
    vocabulary,
    template: createChatTemplate(binding.chatTemplate, {
      bos_token: toTokenText(vocabulary, binding.model.tokenBos()),
      eos_token: toTokenText(vocabulary, binding.model.tokenEos()),
    }),
    scorer: createScorer(binding),
    scheduler: createScheduler(binding, afterBatch),
    options,
    waitingPromptTokens: 0,
  };
  const { maxWaitingPromptTokens } = options.limits;
  return {
    binding,
    scheduler: runtime.scheduler,
    pooler: createPooler(binding, vocabulary, maxWaitingPromptTokens, afterBatch),
    answer: (question) => answer(runtime, question),
    start(request) {
      if (binding.modelKind === 'chat') return startRequest(runtime, request);
      request.output.failed(wrongModelKind(binding.modelKind, 'chat'));
      return () => {};
    },
  };
}

function toTokenText(vocabulary: Vocabulary, token: number): string {
  return token < 0 ? '' : vocabulary.name(token);
}
