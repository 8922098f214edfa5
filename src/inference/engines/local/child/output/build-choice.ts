// The work for one choice of a request: its sampling rules, its grammar and the form of its output.

import { randomInt } from 'node:crypto';
import type { ChatChoiceDelta, CompletionChoice, Task } from '#inference/engine.ts';
import type { Grammar } from '#inference/engines/local/child/binding.ts';
import type { Core, RequestContext } from '#inference/engines/local/child/runtime.ts';
import { toolOpening } from '#inference/engines/local/child/prompt/chat-template.ts';
import type { PromptScores } from '#inference/engines/local/child/prompt/prompt-scores.ts';
import type { Prompt } from '#inference/engines/local/child/prompt/prompts.ts';
import {
  createTokenSampler,
  type SamplingRules,
  type TokenSampler,
  toSamplingRules,
  toSeed,
} from '#inference/engines/local/child/sampling.ts';
import type { Family, Work } from '#inference/engines/local/child/scheduler.ts';
import { createChatOutput } from './chat-output.ts';
import { type ChoiceOutput, createChoice } from './choice.ts';
import { createCompletionOutput } from './completion-output.ts';
import type { Lane } from './best-of.ts';

/** What the works of a request share. */
export interface RequestRun {
  readonly core: Core;
  readonly task: Task;
  readonly context: RequestContext;
  /** Scores decide which candidates are answered. */
  readonly scored: boolean;
  /** Followed from the first token; null for none. */
  readonly grammar: Grammar | null;
  /** Followed once the model opens a tool call; null for none. Throws when it can't be parsed. */
  readonly lazyGrammar: (() => Grammar) | null;
  completionTokens: number;
  cachedTokens: number;
  started(prompt: Prompt): void;
  counted(): void;
  failed(error: Error): void;
}

/** What the works of one prompt share. */
export interface PromptRun {
  readonly prompt: Prompt;
  readonly family: Family;
  readonly scores: PromptScores;
}

export function createWork(
  request: RequestRun,
  { prompt, family, scores }: PromptRun,
  lane: Lane,
  candidate: number,
): Work {
  const { core, task, context } = request;
  const rules = toRules(core, task, candidate);
  const sampler = createTokenSampler(core.binding, core.vocabulary, rules, prompt.tokens);
  if (request.grammar !== null) sampler.constrain(core.binding.createGrammarState(request.grammar));
  return createChoice(
    core.vocabulary,
    core.scorer,
    {
      caller: context.caller,
      priority: context.priority,
      prompt: prompt.tokens,
      family,
      limit: prompt.limit,
      // A call that was asked for is made.
      stops: forcesCall(task) ? [] : [task.body.stop ?? []].flat(),
      callOpening: offersTools(task) ? toolOpening : null,
      includeStop: task.body.include_stop_str_in_output ?? false,
      rules,
      topLogprobs: toTopLogprobs(task) ?? (request.scored ? 0 : null),
      sampler,
      scorePrompt: candidate === 0 ? scores.score : null,
      onStart(cached) {
        if (candidate === 0) request.cachedTokens += cached;
        request.started(prompt);
      },
      onToken() {
        request.completionTokens++;
        request.counted();
      },
      onScore: lane.score,
      onError: request.failed,
    },
    toOutput(request, { prompt, family, scores }, lane, sampler),
  );
}

function toOutput(
  { core, task, lazyGrammar }: RequestRun,
  { prompt, scores }: PromptRun,
  lane: Lane,
  sampler: TokenSampler,
): ChoiceOutput {
  const { index } = lane;
  const emit = (choice: ChatChoiceDelta | CompletionChoice) => lane.emit(choice);
  if (task.kind === 'chat') {
    const options = {
      index,
      logprobs: task.body.logprobs ?? false,
      tools: offersTools(task),
      lazyGrammar,
    };
    return createChatOutput(core.binding, core.vocabulary, sampler, options, emit);
  }
  const { logprobs, echo, prompt_logprobs } = task.body;
  const options = {
    index,
    logprobs: logprobs != null,
    echo: echo ? { text: prompt.text(), tokens: scores.echoed } : null,
    promptLogprobs: prompt_logprobs == null ? null : scores.entries,
  };
  return createCompletionOutput(core.vocabulary, options, emit);
}

function offersTools({ kind, body }: Task): boolean {
  return kind === 'chat' && (body.tools ?? []).length > 0 && body.tool_choice !== 'none';
}

function forcesCall({ kind, body }: Task): boolean {
  if (kind !== 'chat' || body.tool_choice == null) return false;
  return body.tool_choice === 'required' || typeof body.tool_choice === 'object';
}

/** Choices of a seeded request differ from each other and repeat with it: each has the next seed. */
function toRules(core: Core, { body }: Task, candidate: number): SamplingRules {
  const seed = body.seed == null ? randomInt(2 ** 32) : toSeed(body.seed, candidate);
  return toSamplingRules(body, core.options.temperature, seed, core.vocabulary);
}

function toTopLogprobs(task: Task): number | null {
  if (task.kind === 'completion') return task.body.logprobs ?? null;
  return task.body.logprobs ? (task.body.top_logprobs ?? 0) : null;
}
