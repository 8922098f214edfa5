// Builds one choice of a request from the request's fields: its sampling rules, its grammar and the form of its output.

import { randomInt } from 'node:crypto';
import type { Task } from '#inference/engine.ts';
import type { Grammar } from '#inference/engines/local/child/binding.ts';
import type { Generation, SharedPrompt } from '#inference/engines/local/child/generation.ts';
import { forcesCall } from '#inference/engines/local/child/prompt/chat-template.ts';
import type { PromptScores } from '#inference/engines/local/child/prompt/prompt-scores.ts';
import type { Prompt } from '#inference/engines/local/child/prompt/prompts.ts';
import type { ModelRuntime } from '#inference/engines/local/child/runtime.ts';
import { type RequestContext, toolCallOpening } from '#inference/engines/local/protocol.ts';
import type { ThinkTags } from '#inference/think-tags.ts';
import type { ChatChoiceDelta, CompletionChoice } from '#inference/wire/response.ts';
import type { CandidateOutput } from './best-of.ts';
import { createChatOutput, createThoughtOutput } from './chat-output.ts';
import { type ChoiceOutput, createChoice } from './choice.ts';
import { createCompletionOutput } from './completion-output.ts';
import { createLazyGrammar } from './lazy-grammar.ts';
import {
  createTokenSampler,
  type SamplingRules,
  type TokenSampler,
  toSamplingRules,
  toSeed,
} from './sampling.ts';

/** What the generations of a request share. */
export interface RequestRun {
  readonly runtime: ModelRuntime;
  readonly task: Task;
  readonly context: RequestContext;
  /** More candidates are generated than returned, so every token is scored. */
  readonly isBestOf: boolean;
  /** Constrains the output from the first token; null for none. */
  readonly grammar: Grammar | null;
  /** Parses the grammar that constrains a tool call once the model opens one; null for none. May throw. */
  readonly lazyGrammar: (() => Grammar) | null;
  completionTokens: number;
  cachedTokens: number;
  /** Tokens of thoughts, a part of `completionTokens`. */
  reasoningTokens: number;
  started(prompt: Prompt): void;
  counted(): void;
  failed(error: Error): void;
}

/** What the generations of one prompt share. */
export interface PromptRun {
  readonly prompt: Prompt;
  readonly sharedPrompt: SharedPrompt;
  readonly scores: PromptScores;
}

export function buildChoice(
  request: RequestRun,
  { prompt, sharedPrompt, scores }: PromptRun,
  output: CandidateOutput,
  candidate: number,
): Generation {
  const { runtime, task, context } = request;
  const rules = toRules(runtime, task, candidate);
  const sampler = createTokenSampler(runtime.binding, runtime.vocabulary, rules, prompt.tokens);
  if (request.grammar !== null)
    sampler.constrain(runtime.binding.createGrammarState(request.grammar));
  return createChoice(
    runtime.vocabulary,
    runtime.scorer,
    {
      caller: context.caller,
      priority: context.priority,
      prompt: prompt.tokens,
      sharedPrompt,
      maxTokens: prompt.maxTokens,
      // Stop strings must not prevent a tool call that the request demands.
      stops: task.kind === 'chat' && forcesCall(task.body) ? [] : [task.body.stop ?? []].flat(),
      callOpening: offersTools(task) ? toolCallOpening : null,
      includeStop: task.body.include_stop_str_in_output ?? false,
      rules,
      topLogprobs: toTopLogprobs(task) ?? (request.isBestOf ? 0 : null),
      sampler,
      scorePrompt: candidate === 0 ? scores.score : null,
      onStart(cached) {
        if (candidate === 0) request.cachedTokens += cached;
        request.started(prompt);
      },
      onToken(isThought) {
        request.completionTokens++;
        if (isThought) request.reasoningTokens++;
        request.counted();
      },
      onScore: output.score,
      onError: request.failed,
    },
    toOutput(request, { prompt, sharedPrompt, scores }, output, sampler),
  );
}

function toOutput(
  { runtime, task, lazyGrammar }: RequestRun,
  { prompt, scores }: PromptRun,
  output: CandidateOutput,
  sampler: TokenSampler,
): ChoiceOutput {
  const { index } = output;
  const emit = (choice: ChatChoiceDelta | CompletionChoice) => output.emit(choice);
  if (task.kind === 'chat') {
    const options = {
      index,
      logprobs: task.body.logprobs ?? false,
      tools: offersTools(task),
      lazyGrammar: lazyGrammar && createLazyGrammar(runtime, sampler, lazyGrammar),
    };
    const answer = createChatOutput(runtime.vocabulary, options, emit);
    return createThoughtOutput(answer, toThinkTags(task, prompt), (reasoning_content) =>
      emit({ index, delta: { reasoning_content }, logprobs: null, finish_reason: null }),
    );
  }
  const { logprobs, echo, prompt_logprobs } = task.body;
  const options = {
    index,
    logprobs: logprobs != null,
    echo: echo ? { text: prompt.text(), tokens: scores.echoed } : null,
    promptLogprobs: prompt_logprobs == null ? null : scores.entries,
  };
  return createCompletionOutput(runtime.vocabulary, options, emit);
}

function offersTools({ kind, body }: Task): boolean {
  return kind === 'chat' && (body.tools ?? []).length > 0 && body.tool_choice !== 'none';
}

function toThinkTags({ thinkTags }: Extract<Task, { kind: 'chat' }>, prompt: Prompt): ThinkTags {
  if (thinkTags === 'keep') return 'keep';
  return prompt.opensThought ? 'opened' : 'split';
}

/** Each choice of a seeded request has the next seed: the choices differ, and repeat with the request. */
function toRules(runtime: ModelRuntime, { body }: Task, candidate: number): SamplingRules {
  const seed = body.seed == null ? randomInt(2 ** 32) : toSeed(body.seed, candidate);
  return toSamplingRules(body, runtime.options.temperature, seed, runtime.vocabulary);
}

function toTopLogprobs(task: Task): number | null {
  if (task.kind === 'completion') return task.body.logprobs ?? null;
  return task.body.logprobs ? (task.body.top_logprobs ?? 0) : null;
}
