// Log-probabilities of the model's own distribution, before temperature, filters and grammars. They are read by
// sampling the same logits a second time with plain samplers.

import type { Binding, RawSampler } from '#inference/engines/local/child/binding.ts';
import type { Vocabulary } from '#inference/engines/local/child/vocabulary.ts';
import type { ChatLogprobs, PromptLogprob, TokenLogprob } from '#inference/wire/response.ts';
import { createKeyedMutex } from '#lib/async/keyed-mutex.ts';

export interface ScoredToken {
  token: number;
  logprob: number;
  /** The most likely tokens, the best one first. */
  top: { token: number; logprob: number }[];
}

export interface Scorer {
  /** Scores `token` and the `top` most likely tokens by the logits at `index`. */
  score(index: number, token: number, top: number): Promise<ScoredToken>;
  /** The number of tokens that are more likely, plus one. */
  rank(index: number, scored: ScoredToken): Promise<number>;
}

export function createScorer(binding: Binding): Scorer {
  const { context } = binding;
  const greedy = binding.takeSampler({ temperature: 0, seed: 1 });
  const topSamplers = new Map<number, RawSampler>();
  /** A pool of two threads scores two sequences at once, but a sampler must be used by one thread at a time. */
  const mutex = createKeyedMutex();
  const inTurn = <Result>(work: () => Promise<Result>) => mutex.run('samplers', work);

  function topSampler(count: number): RawSampler {
    const known = topSamplers.get(count);
    if (known !== undefined) return known;
    const sampler = binding.takeSampler({ temperature: 1, topK: count, seed: 1 });
    topSamplers.set(count, sampler);
    return sampler;
  }

  async function score(index: number, token: number, top: number): Promise<ScoredToken> {
    // The greedy sampler selects the most likely token, so its result holds the highest logit too. The total weight
    // is relative to that logit.
    const filter: [number[], boolean, boolean, boolean, number] = [[token], false, false, true, 0];
    const sampled = await context.sampleToken(index, greedy, false, false, filter, true);
    const logits = toPairs(sampled[3]);
    const highest = Math.max(...logits.map((pair) => pair.logit));
    const total = highest + Math.log(sampled[4]);
    const own = logits.find((pair) => pair.token === token)?.logit ?? Number.NEGATIVE_INFINITY;
    if (top === 0) return { token, logprob: own - total, top: [] };
    const best = await context.sampleToken(index, topSampler(top), false, false, true, false);
    return {
      token,
      logprob: own - total,
      top: toPairs(best[3]).map((pair) => ({ token: pair.token, logprob: pair.logit - total })),
    };
  }

  async function rank(index: number, scored: ScoredToken): Promise<number> {
    const at = scored.top.findIndex(({ token }) => token === scored.token);
    if (at >= 0) return at + 1;
    const all = await context.sampleToken(index, greedy, false, false, true, false);
    return toPairs(all[3]).findIndex(({ token }) => token === scored.token) + 1;
  }

  return {
    score: (index, token, top) => inTurn(() => score(index, token, top)),
    rank: (index, scored) => inTurn(() => rank(index, scored)),
  };
}

function toPairs(flat: readonly number[]): { token: number; logit: number }[] {
  const pairs: { token: number; logit: number }[] = [];
  for (let at = 0; at + 1 < flat.length; at += 2)
    pairs.push({ token: flat[at] ?? 0, logit: flat[at + 1] ?? 0 });
  return pairs;
}

type ChatEntry = NonNullable<ChatLogprobs['content']>[number];

export function toChatEntry(vocabulary: Vocabulary, scored: ScoredToken): ChatEntry {
  return {
    ...toTokenLogprob(vocabulary, scored),
    top_logprobs: scored.top.map((entry) => toTokenLogprob(vocabulary, entry)),
  };
}

function toTokenLogprob(
  vocabulary: Vocabulary,
  { token, logprob }: { token: number; logprob: number },
): TokenLogprob {
  return { token: vocabulary.name(token), logprob, bytes: [...vocabulary.nameBytes(token)] };
}

/** Always includes the chosen token, so there may be one entry more than the request asks for. */
export function toCompletionTop(
  vocabulary: Vocabulary,
  scored: ScoredToken,
): Record<string, number> {
  const entries = [...scored.top, scored].map(
    ({ token, logprob }) => [toCompletionName(vocabulary, token), logprob] as const,
  );
  return Object.fromEntries(entries);
}

/** Names a token that is not whole characters by its bytes, as OpenAI's completions API does. */
export function toCompletionName(vocabulary: Vocabulary, token: number): string {
  const name = vocabulary.name(token);
  if (!name.includes('\ufffd')) return name;
  const bytes = [...vocabulary.nameBytes(token)];
  return `bytes:${bytes.map((byte) => `\\x${byte.toString(16).padStart(2, '0')}`).join('')}`;
}

export async function toPromptLogprobs(
  scorer: Scorer,
  vocabulary: Vocabulary,
  index: number,
  scored: ScoredToken,
): Promise<Record<string, PromptLogprob>> {
  const found: Record<string, PromptLogprob> = {};
  for (const [at, { token, logprob }] of scored.top.entries())
    found[token] = { logprob, rank: at + 1, decoded_token: vocabulary.name(token) };
  found[scored.token] ??= {
    logprob: scored.logprob,
    rank: await scorer.rank(index, scored),
    decoded_token: vocabulary.name(scored.token),
  };
  return found;
}
