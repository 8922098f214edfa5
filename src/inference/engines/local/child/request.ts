// One request from start to end: its prompts and choices go to the scheduler, and its usage is counted.

import type { Task } from '#inference/engine.ts';
import { type BestOf, createBestOf } from '#inference/engines/local/child/output/best-of.ts';
import {
  buildChoice,
  type PromptRun,
  type RequestRun,
} from '#inference/engines/local/child/output/build-choice.ts';
import { createPromptScores } from '#inference/engines/local/child/prompt/prompt-scores.ts';
import { type Prompt, toPrompts } from '#inference/engines/local/child/prompt/prompts.ts';
import type { RequestContext } from '#inference/engines/local/protocol.ts';
import { newUsage, type Usage } from '#inference/wire/response.ts';
import type { Binding, Grammar } from './binding.ts';
import {
  bestOfBelowN,
  grammarNotBuilt,
  tooManyChoices,
  tooManyCompletionTokens,
  tooManyWaitingPromptTokens,
} from './errors.ts';
import type { Generation } from './generation.ts';
import type { ChildRequest, ModelRuntime } from './runtime.ts';

/** Returns a function that cancels the request. Failures, refusals included, go to `output.failed`. */
export function startRequest(runtime: ModelRuntime, request: ChildRequest): () => void {
  let isCancelled = false;
  let cancel = () => {};
  async function start(): Promise<void> {
    const candidates = toCandidates(request.task);
    const prompts = await toPrompts(runtime, request.task, request.context.contextWindow);
    if (!isCancelled) cancel = submit(runtime, request, prompts, candidates);
  }
  start().catch((error: Error) => request.output.failed(error));
  return () => {
    isCancelled = true;
    cancel();
  };
}

/** Queues all choices of a request. Returns a function that cancels them. Throws EngineError. */
function submit(
  runtime: ModelRuntime,
  request: ChildRequest,
  prompts: readonly Prompt[],
  candidates: number,
): () => void {
  const { task, context, output } = request;
  refuseExcess(runtime, prompts, candidates);
  const n = task.body.n ?? 1;
  const promptTokens = sum(prompts.map(({ whole }) => whole.length));
  const generations: Generation[] = [];
  const run: RequestRun = {
    runtime,
    task,
    context,
    isBestOf: candidates > n,
    ...parseGrammars(runtime.binding, task, context),
    completionTokens: 0,
    cachedTokens: 0,
    reasoningTokens: 0,
    started(prompt) {
      backlog.started(prompt);
      output.started();
    },
    counted: () => output.counted?.(toUsage(promptTokens, run)),
    failed(error) {
      cancel();
      output.failed(error);
    },
  };
  function cancel(): void {
    backlog.clear();
    for (const generation of generations) runtime.scheduler.cancel(generation);
  }

  const toChoices = createChoiceOutputs(request, prompts.length, () => toUsage(promptTokens, run));
  for (const [at, prompt] of prompts.entries())
    generations.push(...buildChoices(run, prompt, toChoices(n, candidates, at * n), candidates));
  // Counted last: a request refused above has nothing waiting.
  const backlog = createBacklog(runtime, prompts);
  for (const generation of generations) runtime.scheduler.submit(generation);
  return cancel;
}

function buildChoices(
  run: RequestRun,
  prompt: Prompt,
  bestOf: BestOf,
  candidates: number,
): Generation[] {
  const promptRun: PromptRun = {
    prompt,
    sharedPrompt: { reader: null, isRead: false },
    scores: createPromptScores(run.runtime, run.task, prompt),
  };
  return Array.from({ length: candidates }, (_, candidate) =>
    buildChoice(run, promptRun, bestOf.candidate(candidate), candidate),
  );
}

/** Joins the choices of all prompts. After the last one, sends the usage and ends the output. */
function createChoiceOutputs(
  { task, output }: ChildRequest,
  prompts: number,
  toSoFar: () => Usage,
) {
  const isContinuous = task.body.stream_options?.continuous_usage_stats === true;
  let open = prompts;
  function promptEnded(): void {
    if (--open > 0) return;
    output.chunk({ choices: [], usage: toSoFar() }, toSoFar());
    output.ended();
  }
  return (n: number, candidates: number, firstIndex: number): BestOf =>
    createBestOf(
      { n, candidates, firstIndex },
      (choice) => {
        const soFar = toSoFar();
        output.chunk({ choices: [choice], usage: isContinuous ? soFar : null }, soFar);
      },
      promptEnded,
    );
}

/**
 * Parses each grammar once for all choices. The lazy one is parsed when a tool call is opened, which may never happen.
 */
function parseGrammars(binding: Binding, task: Task, { grammar, lazyGrammar }: RequestContext) {
  let parsed: Grammar | null = null;
  function parseLazy(gbnf: string): Grammar {
    parsed ??= binding.parseGrammar(gbnf);
    return parsed;
  }
  try {
    return {
      grammar: grammar === null ? null : binding.parseGrammar(grammar),
      lazyGrammar: lazyGrammar === null ? null : () => parseLazy(lazyGrammar),
    };
  } catch {
    throw grammarNotBuilt(task.kind === 'chat' && task.body.tools ? 'tools' : 'response_format');
  }
}

/** The number of choices to generate for each prompt. */
function toCandidates({ kind, body }: Task): number {
  const n = body.n ?? 1;
  const candidates = kind === 'completion' ? (body.best_of ?? n) : n;
  if (candidates < n) throw bestOfBelowN(candidates, n);
  return candidates;
}

function refuseExcess(runtime: ModelRuntime, prompts: readonly Prompt[], candidates: number): void {
  const { maxChoices, maxCompletionTokens, maxWaitingPromptTokens } = runtime.options.limits;
  const choices = prompts.length * candidates;
  if (choices > maxChoices) throw tooManyChoices(choices, maxChoices);
  const completionTokens = sum(prompts.map(({ maxTokens }) => maxTokens)) * candidates;
  if (completionTokens > maxCompletionTokens)
    throw tooManyCompletionTokens(completionTokens, maxCompletionTokens);
  const promptTokens = sum(prompts.map(({ tokens }) => tokens.length));
  const waiting = runtime.waitingPromptTokens;
  if (waiting > 0 && waiting + promptTokens > maxWaitingPromptTokens)
    throw tooManyWaitingPromptTokens();
}

/** Counts a prompt's tokens as waiting until the prompt has a sequence or the request is cancelled. */
function createBacklog(runtime: ModelRuntime, prompts: readonly Prompt[]) {
  const waiting = new Set(prompts);
  runtime.waitingPromptTokens += sum(prompts.map(({ tokens }) => tokens.length));
  function started(prompt: Prompt): void {
    if (waiting.delete(prompt)) runtime.waitingPromptTokens -= prompt.tokens.length;
  }
  return {
    started,
    clear() {
      for (const prompt of waiting) started(prompt);
    },
  };
}

function toUsage(promptTokens: number, run: RequestRun): Usage {
  return {
    ...newUsage(promptTokens, run.completionTokens),
    prompt_tokens_details: { cached_tokens: run.cachedTokens },
    ...(run.reasoningTokens > 0 && {
      completion_tokens_details: { reasoning_tokens: run.reasoningTokens },
    }),
  };
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
