// Collects the log-probability of each prompt token while the prompt is read, for `echo` with `logprobs` and for
// `prompt_logprobs`.

import type { Task } from '#inference/engine.ts';
import type { EchoedToken } from '#inference/engines/local/child/output/completion-output.ts';
import {
  type ScoredToken,
  toPromptLogprobs,
} from '#inference/engines/local/child/output/logprobs.ts';
import type { ModelRuntime } from '#inference/engines/local/child/runtime.ts';
import type { PromptLogprob } from '#inference/wire/response.ts';
import type { Prompt } from './prompts.ts';

export interface PromptScores {
  /** Null if the request does not ask for scores. */
  readonly score: ((position: number, index: number) => Promise<void>) | null;
  echoed(): EchoedToken[];
  /** An entry is null for the first token and for tokens that were not read. */
  entries(): (Record<string, PromptLogprob> | null)[];
}

export function createPromptScores(
  runtime: ModelRuntime,
  task: Task,
  prompt: Prompt,
): PromptScores {
  const body = task.kind === 'completion' ? task.body : null;
  const promptTop = body?.prompt_logprobs ?? null;
  const echoTop = body?.echo ? (body.logprobs ?? null) : null;
  // A stand-in may read only the end of a prompt.
  const unread = prompt.whole.length - prompt.tokens.length;
  // A start token that the request did not write is not echoed.
  const echoFrom = prompt.startAdded ? 1 : 0;
  const scores: (ScoredToken | null)[] = [];
  const entries: (Record<string, PromptLogprob> | null)[] = [];

  async function score(position: number, index: number): Promise<void> {
    const token = prompt.tokens[position + 1];
    if (token === undefined) throw new Error('The last prompt token has no successor to score');
    const at = unread + position + 1;
    const top = Math.max(promptTop ?? 0, echoTop ?? 0);
    const scored = await runtime.scorer.score(index, token, top);
    scores[at] = { ...scored, top: scored.top.slice(0, echoTop ?? 0) };
    if (promptTop === null) return;
    const wanted = { ...scored, top: scored.top.slice(0, promptTop) };
    entries[at] = await toPromptLogprobs(runtime.scorer, runtime.vocabulary, index, wanted);
  }

  return {
    score: promptTop === null && echoTop === null ? null : score,
    echoed: () =>
      prompt.whole.slice(echoFrom).map((token, at) => ({
        token,
        scored: at === 0 ? null : (scores[at + echoFrom] ?? null),
      })),
    entries: () => prompt.whole.map((_, at) => entries[at] ?? null),
  };
}
