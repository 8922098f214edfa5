// Checks of a text completion that a schema can't express: members that are only valid together.

import { checkSampling } from '#inference/apis/check-sampling.ts';
import { invalidRequest, invalidValue } from '#inference/errors.ts';
import type { CompletionRequest } from '#inference/schema.ts';

/** Throws InferenceError. */
export function checkCompletion(body: CompletionRequest): void {
  checkSampling(body);
  const { best_of: bestOf, n } = body;
  if (body.max_tokens === 0 && body.echo !== true) {
    throw invalidRequest(
      'integer_below_min_value',
      'max_tokens',
      'max_tokens must be at least 1 unless echo is true, got 0.',
    );
  }
  if (bestOf != null && bestOf < (n ?? 1)) {
    throw invalidValue('best_of', `best_of must be at least n (${n ?? 1}), got ${bestOf}.`);
  }
  if (bestOf != null && bestOf > (n ?? 1) && body.stream === true) {
    throw invalidValue(
      'best_of',
      'best_of chooses among finished texts, so it cannot be streamed.',
    );
  }
}
