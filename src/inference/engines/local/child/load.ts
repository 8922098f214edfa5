// Loads a model with everything that answers requests from it, in the process it is called in: the
// child's whole inside, and what a benchmark compares the child with.

import type { Task } from '#inference/engine.ts';
import { createScorer } from '#inference/engines/local/child/output/logprobs.ts';
import { createChatTemplate } from '#inference/engines/local/child/prompt/chat-template.ts';
import { countPromptTokens } from '#inference/engines/local/child/prompt/prompts.ts';
import { type Binding, openModel } from './binding.ts';
import type { Core, CoreOptions, RequestContext, RequestOutput } from './runtime.ts';
import { startRequest } from './request.ts';
import { createScheduler, type Scheduler } from './scheduler.ts';
import { createVocabulary, type Vocabulary } from './vocabulary.ts';

export interface LoadedModel {
  readonly binding: Binding;
  readonly scheduler: Scheduler;
  /** Returns a function that cancels it. */
  start(task: Task, context: RequestContext, output: RequestOutput): () => void;
  count(task: Task): Promise<number>;
}

/** `afterBatch` is called when a batch has given all its tokens, and when everything has stopped. */
export async function loadModel(
  options: CoreOptions,
  afterBatch: () => void,
): Promise<LoadedModel> {
  const binding = await openModel(options);
  const vocabulary = createVocabulary(
    binding.model,
    binding.vocabularySize,
    options.startsText,
    () => new Promise((resolve) => setImmediate(resolve)),
  );
  const core: Core = {
    binding,
    vocabulary,
    template: createChatTemplate(binding.chatTemplate, {
      bos_token: tokenText(vocabulary, binding.model.tokenBos()),
      eos_token: tokenText(vocabulary, binding.model.tokenEos()),
    }),
    scorer: createScorer(binding),
    scheduler: createScheduler(binding, afterBatch),
    options,
    waitingPromptTokens: 0,
  };
  return {
    binding,
    scheduler: core.scheduler,
    count: (task) => countPromptTokens(core, task),
    start(task, context, output) {
      let cancelled = false;
      let cancel = () => {};
      startRequest(core, task, context, output, () => cancelled).then(
        (stop) => {
          cancel = stop;
          if (cancelled) stop();
        },
        (error: Error) => output.failed(error),
      );
      return () => {
        cancelled = true;
        cancel();
      };
    },
  };
}

function tokenText(vocabulary: Vocabulary, token: number): string {
  return token < 0 ? '' : vocabulary.name(token);
}
