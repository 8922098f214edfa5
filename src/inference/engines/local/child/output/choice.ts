// One choice of an answer while it is generated: samples, decides when it ends, and hands certain text
// on together with the scores of the tokens it came from.

import type { FinishReason } from '#inference/engine.ts';
import type { SamplingRules, TokenSampler } from '#inference/engines/local/child/sampling.ts';
import type { Family, Work } from '#inference/engines/local/child/scheduler.ts';
import type { Vocabulary } from '#inference/engines/local/child/vocabulary.ts';
import type { ScoredToken, Scorer } from './logprobs.ts';
import { countCharacters, createTextStream } from './stop-strings.ts';

export interface PlacedToken extends ScoredToken {
  /** Where its text begins, in characters of the generated text. */
  offset: number;
}

/** What a choice becomes: chat deltas or completion text. */
export interface ChoiceOutput {
  token(token: number): void;
  text(text: string, scored: PlacedToken[]): void;
  /** The choice goes on after this token. */
  flush(): void;
  /** Inside a tool call, where a stop string would break its arguments. */
  readonly inCall: boolean;
  end(reason: Extract<FinishReason, 'stop' | 'length'>, stop: string | number | null): void;
}

export interface ChoiceOptions {
  caller: string;
  priority: number;
  prompt: readonly number[];
  family: Family;
  /** Tokens it may generate. */
  limit: number;
  stops: readonly string[];
  /** What a tool call begins with; null when none can be made. */
  callOpening: string | null;
  includeStop: boolean;
  rules: SamplingRules;
  /** How many alternatives to score for each token; null for no scores. */
  topLogprobs: number | null;
  sampler: TokenSampler;
  /** Sees the logits after each prompt token; null when they are not wanted. */
  scorePrompt: ((position: number, index: number) => Promise<void>) | null;
  onStart(cached: number): void;
  onToken(): void;
  onScore(logprob: number): void;
  onError(error: Error): void;
}

export function createChoice(
  vocabulary: Vocabulary,
  scorer: Scorer,
  options: ChoiceOptions,
  output: ChoiceOutput,
): Work {
  const { rules, sampler } = options;
  const text = createTextStream(options.stops, options.includeStop, options.callOpening);
  let generated = 0;
  let sent = 0;
  let scored: PlacedToken[] = [];

  function send(piece: string, last: boolean): void {
    sent += countCharacters(piece);
    const ready = last ? scored : scored.filter(({ offset }) => offset < sent);
    scored = last ? [] : scored.slice(ready.length);
    if (piece !== '' || ready.length > 0) output.text(piece, ready);
  }

  function finish(reason: 'stop' | 'length', stop: string | number | null): null {
    send(typeof stop === 'string' ? '' : text.end(), true);
    output.end(reason, stop);
    return null;
  }

  async function place(token: number, index: number): Promise<void> {
    if (options.topLogprobs === null) return;
    const offset = text.length;
    const score = await scorer.score(index, token, options.topLogprobs);
    scored.push({ ...score, offset });
    options.onScore(score.logprob);
  }

  return {
    caller: options.caller,
    priority: options.priority,
    prompt: options.prompt,
    family: options.family,
    scoresPrompt: options.scorePrompt !== null,
    cancelled: false,
    started: options.onStart,
    async scored(position, index) {
      await options.scorePrompt?.(position, index);
    },
    failed: options.onError,
    dispose: sampler.dispose,
    async next(index) {
      if (options.limit === 0) return finish('length', null);
      const token = await sampler.sample(index);
      if (this.cancelled) return null;
      if (token < 0) return finish('stop', null);
      generated++;
      options.onToken();
      const stopsHere = rules.stopTokens.has(token);
      if (stopsHere && !options.includeStop) return finish('stop', token);
      if (!stopsHere && vocabulary.isEnd(token)) return finish('stop', null);
      await place(token, index);
      if (this.cancelled) return null;
      output.token(token);
      text.watch(generated > rules.minTokens && !output.inCall);
      const piece = text.push(vocabulary.bytes(token));
      if (piece.stop !== null) {
        const end = sent + countCharacters(piece.text);
        scored = scored.filter(({ offset }) => offset < end);
        send(piece.text, true);
        return finish('stop', piece.stop);
      }
      send(piece.text, false);
      if (stopsHere) return finish('stop', token);
      if (generated >= options.limit) return finish('length', null);
      output.flush();
      return token;
    },
  };
}
