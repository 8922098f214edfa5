// One choice of a response while it is generated: it samples tokens, decides when it ends, and passes on text that is
// certain together with the scores of the tokens it came from.

import type { Generation, SharedPrompt } from '#inference/engines/local/child/generation.ts';
import type { Vocabulary } from '#inference/engines/local/child/vocabulary.ts';
import type { FinishReason } from '#inference/wire/response.ts';
import type { ScoredToken, Scorer } from './logprobs.ts';
import type { SamplingRules, TokenSampler } from './sampling.ts';
import { countCharacters, createTextStream, type TextStream } from './stop-strings.ts';

export interface PlacedToken extends ScoredToken {
  /** Where the token's text begins, in characters of the generated text. */
  offset: number;
}

/** Turns a choice into chat deltas or completion text. */
export interface ChoiceOutput {
  /** Called before each token is counted. */
  begin(): void;
  token(token: number): void;
  text(text: string, scored: PlacedToken[]): void;
  /** Called after each token that is not the last. */
  flush(): void;
  /** True inside a tool call, where a stop string would break the arguments. */
  readonly inCall: boolean;
  /** True inside a thought. */
  readonly isThinking: boolean;
  /** `stop` is the stop string or token that ended the choice; null if none did. */
  end(reason: Extract<FinishReason, 'stop' | 'length'>, stop: string | number | null): void;
}

export interface ChoiceOptions {
  caller: string;
  priority: number;
  prompt: readonly number[];
  sharedPrompt: SharedPrompt;
  /** Maximum tokens to generate. */
  maxTokens: number;
  stops: readonly string[];
  /** The tag that opens a tool call; null if the request offers no tools. */
  callOpening: string | null;
  includeStop: boolean;
  rules: SamplingRules;
  /** Alternatives to score for each token; null for no scores. */
  topLogprobs: number | null;
  sampler: TokenSampler;
  /** Sees the logits after each prompt token; null if they are not needed. */
  scorePrompt: ((position: number, index: number) => Promise<void>) | null;
  onStart(cachedTokens: number): void;
  onToken(isThought: boolean): void;
  onScore(logprob: number): void;
  onError(error: Error): void;
}

interface ChoiceState {
  readonly vocabulary: Vocabulary;
  readonly scorer: Scorer;
  readonly options: ChoiceOptions;
  readonly output: ChoiceOutput;
  readonly text: TextStream;
  /** Tokens generated. */
  generated: number;
  /** Characters sent. */
  sent: number;
  /** Scored tokens whose text was not sent yet. */
  scored: PlacedToken[];
}

export function createChoice(
  vocabulary: Vocabulary,
  scorer: Scorer,
  options: ChoiceOptions,
  output: ChoiceOutput,
): Generation {
  const text = createTextStream(options.stops, options.includeStop, options.callOpening);
  const state = { vocabulary, scorer, options, output, text, generated: 0, sent: 0, scored: [] };
  return {
    caller: options.caller,
    priority: options.priority,
    prompt: options.prompt,
    sharedPrompt: options.sharedPrompt,
    scoresPrompt: options.scorePrompt !== null,
    cancelled: false,
    started: options.onStart,
    async scored(position, index) {
      await options.scorePrompt?.(position, index);
    },
    failed: options.onError,
    dispose: options.sampler.dispose,
    next(index, computed) {
      return generateToken(state, index, computed, () => this.cancelled);
    },
  };
}

/** Resolves to the next token, or to null if the choice has ended or was cancelled. */
async function generateToken(
  state: ChoiceState,
  index: number,
  computed: Promise<void>,
  isCancelled: () => boolean,
): Promise<number | null> {
  const { options, output, text, vocabulary } = state;
  const token = options.maxTokens === 0 ? null : await options.sampler.sample(index);
  await computed;
  if (isCancelled()) return null;
  if (token === null) return finish(state, 'length', null);
  if (token < 0) return finish(state, 'stop', null);
  // Before the first token is counted: a client that asks for counts in each event sees them start at 0.
  output.begin();
  state.generated++;
  options.onToken(output.isThinking);
  const isStop = options.rules.stopTokens.has(token);
  if (isStop && !options.includeStop) return finish(state, 'stop', token);
  if (!isStop && vocabulary.isEnd(token)) return finish(state, 'stop', null);
  await scoreToken(state, token, index);
  if (isCancelled()) return null;
  output.token(token);
  text.watch(state.generated > options.rules.minTokens && !output.inCall);
  const piece = text.push(vocabulary.bytes(token));
  if (piece.stop !== null) return finishAtStop(state, piece.text, piece.stop);
  send(state, piece.text, false);
  if (isStop) return finish(state, 'stop', token);
  if (state.generated >= options.maxTokens) return finish(state, 'length', null);
  output.flush();
  return token;
}

async function scoreToken(state: ChoiceState, token: number, index: number): Promise<void> {
  const { options, scorer, text } = state;
  if (options.topLogprobs === null) return;
  const offset = text.length;
  const score = await scorer.score(index, token, options.topLogprobs);
  state.scored.push({ ...score, offset });
  options.onScore(score.logprob);
}

/** Sends text, with the scored tokens that begin in the text sent so far; with all of them if it is the last. */
function send(state: ChoiceState, piece: string, isLast: boolean): void {
  state.sent += countCharacters(piece);
  const ready = isLast ? state.scored : state.scored.filter(({ offset }) => offset < state.sent);
  state.scored = isLast ? [] : state.scored.slice(ready.length);
  if (piece !== '' || ready.length > 0) state.output.text(piece, ready);
}

/** Sends the text before a stop string, without the scores of what comes after it. */
function finishAtStop(state: ChoiceState, piece: string, stop: string): null {
  const end = state.sent + countCharacters(piece);
  state.scored = state.scored.filter(({ offset }) => offset < end);
  send(state, piece, true);
  return finish(state, 'stop', stop);
}

function finish(state: ChoiceState, reason: 'stop' | 'length', stop: string | number | null): null {
  send(state, typeof stop === 'string' ? '' : state.text.end(), true);
  state.output.end(reason, stop);
  return null;
}
