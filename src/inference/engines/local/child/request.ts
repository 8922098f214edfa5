// One request: its prompts and choices put to the scheduler, its counts, and its end.

import { EngineError, type Task, type Usage } from '#inference/engine.ts';
import {
  createWork,
  type PromptRun,
  type RequestRun,
} from '#inference/engines/local/child/output/build-choice.ts';
import { createSelection } from '#inference/engines/local/child/output/best-of.ts';
import { createPromptScores } from '#inference/engines/local/child/prompt/prompt-scores.ts';
import { type Prompt, toPrompts } from '#inference/engines/local/child/prompt/prompts.ts';
import type { Grammar } from './binding.ts';
import { type Core, type RequestContext, type RequestOutput, rejected } from './runtime.ts';
import type { Work } from './scheduler.ts';

/** Resolves when it is in the queue, with a function that cancels it. Throws EngineError. */
export async function startRequest(
  core: Core,
  task: Task,
  context: RequestContext,
  output: RequestOutput,
  isCancelled: () => boolean,
): Promise<() => void> {
  const n = task.body.n ?? 1;
  const candidates = toCandidates(task, n);
  const prompts = await toPrompts(core, task, context.contextWindow);
  if (isCancelled()) return () => {};
  refuseExcess(core, prompts, candidates);

  const works: Work[] = [];
  const request: RequestRun = {
    core,
    task,
    context,
    scored: candidates > n,
    ...parseGrammars(core, task, context),
    completionTokens: 0,
    cachedTokens: 0,
    started(prompt) {
      backlog.started(prompt);
      output.started();
    },
    counted: () => output.counted?.(soFar()),
    failed(error) {
      cancel();
      output.failed(error);
    },
  };
  const promptTokens = sum(prompts.map(({ whole }) => whole.length));
  const soFar = () => toUsage(promptTokens, request);
  let open = prompts.length;

  function promptEnded(): void {
    if (--open > 0) return;
    output.chunk({ choices: [], usage: soFar() }, soFar());
    output.ended();
  }
  function cancel(): void {
    backlog.clear();
    for (const work of works) core.scheduler.cancel(work);
  }

  for (const [at, prompt] of prompts.entries()) {
    const selection = createSelection(
      n,
      candidates,
      at * n,
      (choice) => output.chunk({ choices: [choice], usage: null }, soFar()),
      promptEnded,
    );
    const run: PromptRun = {
      prompt,
      family: { reader: null, read: false },
      scores: createPromptScores(core, task, prompt),
    };
    for (let candidate = 0; candidate < candidates; candidate++)
      works.push(createWork(request, run, selection.lane(candidate), candidate));
  }
  // Only now: what was refused above waits for nothing.
  const backlog = createBacklog(core, prompts);
  for (const work of works) core.scheduler.submit(work);
  return cancel;
}

/** Once for all choices, and one that waits for a tool call only when there is one. */
function parseGrammars({ binding }: Core, task: Task, context: RequestContext) {
  const { grammar, lazyGrammar } = context;
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
    const param = task.kind === 'chat' && task.body.tools ? 'tools' : 'response_format';
    throw rejected('No grammar can be built from this schema.', 'invalid_value', param);
  }
}

function toCandidates({ kind, body }: Task, n: number): number {
  const candidates = kind === 'completion' ? (body.best_of ?? n) : n;
  if (candidates >= n) return candidates;
  throw rejected(
    `best_of is ${candidates} and n is ${n}: best_of can't be the smaller one.`,
    'invalid_value',
    'best_of',
  );
}

function refuseExcess(core: Core, prompts: readonly Prompt[], candidates: number): void {
  const { limits } = core.options;
  if (prompts.length * candidates > limits.choices)
    throw rejected(
      `A request may have ${limits.choices} choices over all its prompts; this one has ${prompts.length * candidates}.`,
      'integer_above_max_value',
      'n',
    );
  const completion = sum(prompts.map(({ limit }) => limit)) * candidates;
  if (completion > limits.completionTokens)
    throw rejected(
      `All choices together may generate ${limits.completionTokens} tokens; this request could reach ${completion}. Ask for fewer choices or set max_tokens.`,
      'integer_above_max_value',
      'max_tokens',
    );
  const reading = sum(prompts.map(({ tokens }) => tokens.length));
  const waiting = core.waitingPromptTokens;
  if (waiting > 0 && waiting + reading > limits.waitingPromptTokens)
    throw new EngineError('overloaded', 'Too many prompt tokens are waiting to be read.');
}

/** Prompt tokens count as waiting until their prompt has a sequence, or the request is gone. */
function createBacklog(core: Core, prompts: readonly Prompt[]) {
  const waiting = new Set(prompts);
  core.waitingPromptTokens += sum(prompts.map(({ tokens }) => tokens.length));
  function started(prompt: Prompt): void {
    if (waiting.delete(prompt)) core.waitingPromptTokens -= prompt.tokens.length;
  }
  return {
    started,
    clear() {
      for (const prompt of waiting) started(prompt);
    },
  };
}

function toUsage(promptTokens: number, request: RequestRun): Usage {
  return {
    prompt_tokens: promptTokens,
    completion_tokens: request.completionTokens,
    total_tokens: promptTokens + request.completionTokens,
    prompt_tokens_details: { cached_tokens: request.cachedTokens },
  };
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
