// Loads a model and everything that serves requests with it, in the calling process. It is all of the child but the
// messages, and what the benchmark compares the child with.

import { createScorer } from '#inference/engines/local/child/output/logprobs.ts';
import { withSpecial } from '#inference/engines/local/child/pooling/pooled-texts.ts';
import { Pooler } from '#inference/engines/local/child/pooling/pooler.ts';
import {
  createChatTemplate,
  toChatPrompt,
} from '#inference/engines/local/child/prompt/chat-template.ts';
import {
  countPromptTokens,
  toChatTokens,
  withStart,
} from '#inference/engines/local/child/prompt/prompts.ts';
import { refuseUnknown } from '#inference/engines/local/child/vocabulary.ts';
import type { Answer, ChildOptions, Question } from '#inference/engines/local/protocol.ts';
import type { TokenizeTask, Tokens } from '#inference/pooling.ts';
import type { Binding } from './binding.ts';
import { wrongModelKind } from './errors.ts';
import { startNative } from './native.ts';
import { openModel } from './open-model.ts';
import { startRequest } from './request.ts';
import type { ChildRequest, ModelRuntime } from './runtime.ts';
import { Scheduler } from './scheduler.ts';
import { createSecondThread } from './second-thread.ts';
import { createVocabulary, type Vocabulary } from './vocabulary.ts';

export interface LoadedModel {
  readonly binding: Binding;
  readonly scheduler: Scheduler;
  readonly pooler: Pooler;
  /** Returns a function that cancels the request. */
  start(request: ChildRequest): () => void;
  answer(question: Question): Promise<Answer>;
  /** Ends after the current batch, and frees the memory of weights and cache. Nothing may be called afterwards. */
  close(): Promise<void>;
}

/**
 * `afterBatch` is called when every sequence of a batch has its token, and when all work has ended.
 * `poolThreads` is the number of threads in the pool of this process, one or two. A process that
 * loads a model again has started llama.cpp already, and passes its own `start`.
 */
export async function loadModel(
  options: ChildOptions,
  afterBatch: () => void,
  poolThreads: number,
  start = startNative,
): Promise<LoadedModel> {
  // Before the weights, because it may fail.
  const secondThread = poolThreads > 1 ? createSecondThread() : null;
  const binding = await openModel(options, start);
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
    scheduler: new Scheduler(binding, afterBatch, secondThread),
    options,
    waitingPromptTokens: 0,
  };
  const { scheduler } = runtime;
  const { maxWaitingPromptTokens } = options.limits;
  const pooler = new Pooler(binding, vocabulary, maxWaitingPromptTokens, afterBatch);
  return {
    binding,
    scheduler,
    pooler,
    answer: (question) => answer(runtime, question),
    async close() {
      await Promise.all([scheduler.stop(), pooler.stop()]);
      await binding.close();
    },
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

/** Throws EngineError `rejected`. */
async function answer(runtime: ModelRuntime, question: Question): Promise<Answer> {
  if (question.kind === 'count') return countPromptTokens(runtime, question.task);
  if (question.kind === 'tokenize') return tokenize(runtime, question.task);
  return detokenize(runtime, question.tokens);
}

async function tokenize(runtime: ModelRuntime, task: TokenizeTask): Promise<Tokens> {
  const tokens = await toTokens(runtime, task);
  const { vocabulary } = runtime;
  return { tokens, texts: task.withTexts ? tokens.map((token) => vocabulary.name(token)) : null };
}

async function toTokens(
  runtime: ModelRuntime,
  { source, addsSpecial }: TokenizeTask,
): Promise<number[]> {
  const { binding, vocabulary } = runtime;
  if ('chat' in source) return toChatTokens(runtime, toChatPrompt(source.chat));
  if (binding.modelKind !== 'chat') {
    const tokens = binding.model.tokenize(source.prompt, false);
    return Array.from(addsSpecial ? withSpecial(binding.model, tokens) : tokens);
  }
  const tokens = await vocabulary.tokenize(source.prompt, true);
  return withStart(addsSpecial ? vocabulary.textStart : null, tokens);
}

function detokenize({ binding, vocabulary }: ModelRuntime, tokens: readonly number[]): string {
  refuseUnknown(tokens, vocabulary, 'tokens');
  return binding.model.detokenize(Uint32Array.from(tokens), true);
}
