// From a request's sampling fields to tokens: one native sampler per choice, reconfigured between tokens
// where a rule depends on what was generated so far.

import type { ChatRequest, CompletionRequest } from '#inference/schema.ts';
import type { Binding, GrammarState, RawSampler, SamplerConfig } from './binding.ts';
import { rejected } from './runtime.ts';
import type { Vocabulary } from './vocabulary.ts';

/** How far back a repetition is still one; beyond it the oldest tokens are forgiven. */
const historyTokens = 32_768;

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
  /** Tokens that may not come before `minTokens`, or ever when `ignoreEnd`. */
  stopTokens: ReadonlySet<number>;
  ignoreEnd: boolean;
}

export interface TokenSampler {
  /** -1 when no token is possible. */
  sample(index: number): Promise<number>;
  /** From the next token on, only what the grammar allows; `null` lifts it. */
  constrain(grammar: GrammarState | null): void;
  dispose(): void;
}

/** Throws EngineError `rejected` for a token that the vocabulary does not have. */
export function toSamplingRules(
  body: ChatRequest | CompletionRequest,
  defaultTemperature: number,
  seed: number,
  vocabulary: Vocabulary,
): SamplingRules {
  const biases = Object.entries(body.logit_bias ?? {});
  const bias = new Map(biases.map(([key, value]) => [Number(key), value]));
  const stopTokens = new Set(body.stop_token_ids ?? []);
  refuseStrangers(bias.keys(), vocabulary, 'logit_bias');
  refuseStrangers(stopTokens, vocabulary, 'stop_token_ids');
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

function refuseStrangers(tokens: Iterable<number>, { size }: Vocabulary, param: string): void {
  for (const token of tokens)
    if (!Number.isInteger(token) || token < 0 || token >= size)
      throw rejected(
        `${token} is not a token of this model; its vocabulary has ${size} tokens.`,
        'invalid_value',
        param,
      );
}

/** The binding takes 32 bits; both halves of a longer seed count. Each step on is another seed. */
export function toSeed(seed: number | bigint, step: number): number {
  // As numbers, large seeds would swallow the step.
  const wide = BigInt(seed) + BigInt(step);
  return Number(BigInt.asUintN(32, wide ^ ((wide >> 32n) * 0x9e3779b1n)));
}

export function createTokenSampler(
  binding: Binding,
  vocabulary: Vocabulary,
  rules: SamplingRules,
  prompt: readonly number[],
): TokenSampler {
  const counts = new Map<number, number>();
  const penalised = rules.frequencyPenalty !== 0 || rules.presencePenalty !== 0;
  const fixed = toFixedConfig(rules);
  const history = rules.repetitionPenalty === 1 ? null : [...new Set(prompt)];
  let grammar: GrammarState | null = null;
  let generated = 0;
  let sampler: RawSampler | null = null;
  let stale = true;

  // An end token must stay possible under a grammar: a finished grammar allows nothing else.
  const bansEnd = () => grammar === null && (rules.ignoreEnd || generated < rules.minTokens);

  function bias(): Map<number, number> {
    const values = new Map(rules.bias);
    for (const [token, count] of counts)
      values.set(
        token,
        (values.get(token) ?? 0) - rules.presencePenalty - count * rules.frequencyPenalty,
      );
    if (grammar !== null)
      for (const token of vocabulary.overlongTokens) values.set(token, Number.NEGATIVE_INFINITY);
    if (bansEnd())
      for (const token of vocabulary.endTokens) values.set(token, Number.NEGATIVE_INFINITY);
    if (generated < rules.minTokens)
      for (const token of rules.stopTokens) values.set(token, Number.NEGATIVE_INFINITY);
    return values;
  }

  function config(): SamplerConfig {
    const values = bias();
    return {
      ...fixed,
      ...(values.size > 0 && {
        tokenBiasKeys: Uint32Array.from(values.keys()),
        tokenBiasValues: Float32Array.from(values.values()),
      }),
      ...(history !== null && {
        repeatPenalty: rules.repetitionPenalty,
        repeatPenaltyTokens: Uint32Array.from(history),
        repeatPenaltyMaxTokens: historyTokens,
      }),
      ...(grammar !== null && { grammarEvaluationState: grammar }),
    };
  }

  return {
    async sample(index) {
      if (sampler === null) sampler = binding.takeSampler(config());
      else if (stale) sampler.applyConfig(config());
      stale = false;
      const token = await binding.context.sampleToken(index, sampler);
      generated++;
      history?.push(token);
      if (generated === rules.minTokens) stale = true;
      if (penalised) {
        counts.set(token, (counts.get(token) ?? 0) + 1);
        stale = true;
      }
      return token;
    },
    constrain(state) {
      grammar = state;
      stale = true;
    },
    dispose() {
      if (sampler !== null) binding.returnSampler(sampler);
      sampler = null;
    },
  };
}

function toFixedConfig(rules: SamplingRules): SamplerConfig {
  return {
    temperature: rules.temperature,
    seed: rules.seed,
    // An absent key switches a filter off; a top_k of zero would sort the whole vocabulary.
    ...(rules.topP < 1 && { topP: rules.topP }),
    ...(rules.topK > 0 && { topK: rules.topK }),
    ...(rules.minP > 0 && { minP: rules.minP }),
  };
}
