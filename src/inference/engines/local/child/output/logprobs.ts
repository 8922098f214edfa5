// Log-probabilities of the model's own distribution, before temperature, filters and grammars: read by
// sampling the same logits a second time with plain samplers.

import type { ChatLogprobs, PromptLogprob, TokenLogprob } from '#inference/engine.ts';
import type { Binding, RawSampler } from '#inference/engines/local/child/binding.ts';
import type { Vocabulary } from '#inference/engines/local/child/vocabulary.ts';

export interface ScoredToken {
  token: number;
  logprob: number;
  /** The most likely tokens, best first. */
  top: { token: number; logprob: number }[];
}

export interface Scorer {
  score(index: number, token: number, top: number): Promise<ScoredToken>;
  /** How many tokens are more likely, plus one. */
  rank(index: number, scored: ScoredToken): Promise<number>;
}

export function createScorer(binding: Binding): Scorer {
  const { context } = binding;
  const greedy = binding.takeSampler({ temperature: 0, seed: 1 });
  const topSamplers = new Map<number, RawSampler>();

  function topSampler(count: number): RawSampler {
    const known = topSamplers.get(count);
    if (known !== undefined) return known;
    const sampler = binding.takeSampler({ temperature: 1, topK: count, seed: 1 });
    topSamplers.set(count, sampler);
    return sampler;
  }

  return {
    async score(index, token, top) {
      // The selected token of the greedy sampler is the most likely one, so the answer holds the highest
      // logit too, against which the total weight is given.
      const filter: [number[], boolean, boolean, boolean, number] = [
        [token],
        false,
        false,
        true,
        0,
      ];
      const answer = await context.sampleToken(index, greedy, false, false, filter, true);
      const logits = toPairs(answer[3]);
      const highest = Math.max(...logits.map((pair) => pair.logit));
      const total = highest + Math.log(answer[4]);
      const own = logits.find((pair) => pair.token === token)?.logit ?? Number.NEGATIVE_INFINITY;
      if (top === 0) return { token, logprob: own - total, top: [] };
      const best = await context.sampleToken(index, topSampler(top), false, false, true, false);
      return {
        token,
        logprob: own - total,
        top: toPairs(best[3]).map((pair) => ({ token: pair.token, logprob: pair.logit - total })),
      };
    },
    async rank(index, scored) {
      const at = scored.top.findIndex(({ token }) => token === scored.token);
      if (at >= 0) return at + 1;
      const all = await context.sampleToken(index, greedy, false, false, true, false);
      return toPairs(all[3]).findIndex(({ token }) => token === scored.token) + 1;
    },
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

/** The chosen token is always among them, so there may be one more than was asked for. */
export function toCompletionTop(
  vocabulary: Vocabulary,
  scored: ScoredToken,
): Record<string, number> {
  const entries = [...scored.top, scored].map(
    ({ token, logprob }) => [toCompletionName(vocabulary, token), logprob] as const,
  );
  return Object.fromEntries(entries);
}

/** A token that is not whole characters is named by its bytes, as the completions API has always done. */
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
