// A request's sampling fields applied to logits: one native sampler per choice, which is configured again between
// tokens if a rule depends on the tokens generated so far.

import type {
  Binding,
  GrammarState,
  RawSampler,
  SamplerConfig,
} from '#inference/engines/local/child/binding.ts';
import { refuseUnknown, type Vocabulary } from '#inference/engines/local/child/vocabulary.ts';
import type { ChatRequest, CompletionRequest } from '#inference/schema.ts';

/** Tokens that the repetition penalty applies to. Older ones are not penalised. */
const maxHistoryTokens = 32_768;

export interface SamplingRules {
  temperature: number;
  topP: number;
  topK: number;
  minP: number;
  frequencyPenalty: number;
  presencePenalty: number;
  repetitionPenalty: number;
  seed: number;
  bias: ReadonlyMap<number, number>;
  minTokens: number;
  /** Tokens that end the choice. None of them may come before `minTokens`. */
  stopTokens: ReadonlySet<number>;
  /** Bans the model's own end tokens, unless a grammar is on. */
  ignoreEnd: boolean;
}

export interface TokenSampler {
  /** Resolves to -1 if no token is possible. */
  sample(index: number): Promise<number>;
  /** Allows only what the grammar allows, from the next token on. Null lifts the restriction. */
  constrain(grammar: GrammarState | null): void;
  dispose(): void;
}

/** Throws EngineError `rejected` for a token id that the vocabulary does not have. */
export function toSamplingRules(
  body: ChatRequest | CompletionRequest,
  defaultTemperature: number,
  seed: number,
  vocabulary: Vocabulary,
): SamplingRules {
  const biases = Object.entries(body.logit_bias ?? {});
  const bias = new Map(biases.map(([key, value]) => [Number(key), value]));
  const stopTokens = new Set(body.stop_token_ids ?? []);
  refuseUnknown(bias.keys(), vocabulary, 'logit_bias');
  refuseUnknown(stopTokens, vocabulary, 'stop_token_ids');
  return {
    temperature: body.temperature ?? defaultTemperature,
    topP: body.top_p ?? 1,
    topK: body.top_k ?? 0,
    minP: body.min_p ?? 0,
    frequencyPenalty: body.frequency_penalty ?? 0,
    presencePenalty: body.presence_penalty ?? 0,
    repetitionPenalty: body.repetition_penalty ?? 1,
    seed,
    bias,
    minTokens: body.min_tokens ?? 0,
    stopTokens,
    ignoreEnd: body.ignore_eos ?? false,
  };
}

/** Folds a 64-bit seed to the 32 bits that the binding takes. Each `step` gives another seed. */
export function toSeed(seed: number | bigint, step: number): number {
  // As a number, a large seed would absorb the step.
  const wide = BigInt(seed) + BigInt(step);
  return Number(BigInt.asUintN(32, wide ^ ((wide >> 32n) * 0x9e3779b1n)));
}

interface SamplerState {
  readonly rules: SamplingRules;
  readonly vocabulary: Vocabulary;
  /** How often each token was generated, for the penalties. */
  readonly counts: Map<number, number>;
  /** The tokens of the prompt and the generated ones; null without a repetition penalty. */
  readonly history: number[] | null;
  grammar: GrammarState | null;
  generated: number;
}

export function createTokenSampler(
  binding: Binding,
  vocabulary: Vocabulary,
  rules: SamplingRules,
  prompt: readonly number[],
): TokenSampler {
  const state: SamplerState = {
    rules,
    vocabulary,
    counts: new Map(),
    history: rules.repetitionPenalty === 1 ? null : [...new Set(prompt)],
    grammar: null,
    generated: 0,
  };
  const hasPenalties = rules.frequencyPenalty !== 0 || rules.presencePenalty !== 0;
  let sampler: RawSampler | null = null;
  let isStale = true;

  return {
    async sample(index) {
      if (sampler === null) sampler = binding.takeSampler(toConfig(state));
      else if (isStale) sampler.applyConfig(toConfig(state));
      isStale = false;
      const token = await binding.context.sampleToken(index, sampler);
      state.generated++;
      state.history?.push(token);
      if (state.generated === rules.minTokens) isStale = true;
      if (hasPenalties) {
        state.counts.set(token, (state.counts.get(token) ?? 0) + 1);
        isStale = true;
      }
      return token;
    },
    constrain(grammar) {
      state.grammar = grammar;
      isStale = true;
    },
    dispose() {
      if (sampler !== null) binding.returnSampler(sampler);
      sampler = null;
    },
  };
}

function toConfig(state: SamplerState): SamplerConfig {
  const { rules, history, grammar } = state;
  const bias = toBias(state);
  return {
    ...toFixedConfig(rules),
    ...(bias.size > 0 && {
      tokenBiasKeys: Uint32Array.from(bias.keys()),
      tokenBiasValues: Float32Array.from(bias.values()),
    }),
    ...(history !== null && {
      repeatPenalty: rules.repetitionPenalty,
      repeatPenaltyTokens: Uint32Array.from(history),
      repeatPenaltyMaxTokens: maxHistoryTokens,
    }),
    ...(grammar !== null && { grammarEvaluationState: grammar }),
  };
}

function toBias({ rules, vocabulary, counts, grammar, generated }: SamplerState) {
  const bias = new Map(rules.bias);
  const ban = (tokens: Iterable<number>) => {
    for (const token of tokens) bias.set(token, Number.NEGATIVE_INFINITY);
  };
  for (const [token, count] of counts) {
    const penalty = rules.presencePenalty + count * rules.frequencyPenalty;
    bias.set(token, (bias.get(token) ?? 0) - penalty);
  }
  if (grammar !== null) ban(vocabulary.overlongTokens);
  // Under a grammar an end token must stay possible: a finished grammar allows nothing else.
  else if (rules.ignoreEnd || generated < rules.minTokens) ban(vocabulary.endTokens);
  if (generated < rules.minTokens) ban(rules.stopTokens);
  return bias;
}

function toFixedConfig(rules: SamplingRules): SamplerConfig {
  return {
    temperature: rules.temperature,
    seed: rules.seed,
    // A filter is off if its key is absent. A top_k of zero would sort the whole vocabulary.
    ...(rules.topP < 1 && { topP: rules.topP }),
    ...(rules.topK > 0 && { topK: rules.topK }),
    ...(rules.minP > 0 && { minP: rules.minP }),
  };
}
