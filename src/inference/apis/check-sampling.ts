// Checks of members that chat and text completions share, and that a schema can't express.

import { rawIntegers, type WithRawIntegers } from '#http/body/json.ts';
import { findConstraints } from '#inference/constraint.ts';
import { invalidValue, missingParameter } from '#inference/errors.ts';
import type { ChatRequest, CompletionRequest } from '#inference/schema.ts';

/** Throws InferenceError. A seed too long for a number is replaced by its exact value. */
export function checkSampling(body: (ChatRequest | CompletionRequest) & WithRawIntegers): void {
  readSeed(body);
  if (body.stream_options != null && body.stream !== true) {
    throw invalidValue('stream_options', 'stream_options requires that stream is true.');
  }
  const maxCompletion = 'max_completion_tokens' in body ? body.max_completion_tokens : null;
  const maxTokens = maxCompletion ?? body.max_tokens;
  if (body.min_tokens != null && maxTokens != null && body.min_tokens > maxTokens) {
    throw invalidValue(
      'min_tokens',
      `min_tokens must not exceed max_tokens (${maxTokens}), got ${body.min_tokens}.`,
    );
  }
  refuseOtherName(body, 'n_predict', 'max_tokens', maxTokens ?? null);
  refuseOtherName(body, 'n_cmpl', 'n', body.n ?? 1);
  if ([body.stop ?? []].flat().includes('')) {
    throw invalidValue('stop', 'A stop string must have at least one character.');
  }
  checkConstraints(body);
  for (const id of Object.keys(body.logit_bias ?? {})) {
    if (!/^\d{1,10}$/.test(id)) {
      throw invalidValue('logit_bias', 'The keys of logit_bias must be token ids, such as "42".');
    }
  }
}

/**
 * llama-server has names of its own for what limits a response, and prefers them. Limits of the caller and the bill
 * follow `value`, so the other name must not contradict it.
 */
function refuseOtherName(body: object, other: string, name: string, value: number | null): void {
  const given = (body as Record<string, unknown>)[other];
  if (given == null || given === value) return;
  throw invalidValue(other, `${other} is another name of ${name}. Send ${name} instead.`);
}

function checkConstraints(body: ChatRequest | CompletionRequest): void {
  const format = body.response_format;
  if (format?.type === 'json_schema' && (format.json_schema?.schema ?? format.schema) == null) {
    throw missingParameter('response_format.json_schema.schema');
  }
  const [one, other] = findConstraints(body);
  if (one?.kind === 'json_schema' && one.schema === undefined) {
    throw invalidValue(one.param, `${one.param} must be a JSON Schema, got text that is not JSON.`);
  }
  if (one !== undefined && other !== undefined) {
    throw invalidValue(
      other.param,
      `${one.param} and ${other.param} exclude each other. Send only one of the two.`,
    );
  }
}

function readSeed(body: (ChatRequest | CompletionRequest) & WithRawIntegers): void {
  const digits = body[rawIntegers]?.seed;
  if (typeof body.seed !== 'number' || Number.isSafeInteger(body.seed)) return;
  // If the seed is given more than once, the last one counts. If it is not written as digits, the number's value
  // counts.
  const seed = BigInt(digits !== undefined && Number(digits) === body.seed ? digits : body.seed);
  if (BigInt.asIntN(64, seed) !== seed) throw invalidValue('seed', 'seed must fit in 64 bits.');
  body.seed = seed;
}
