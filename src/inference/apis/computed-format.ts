// The format of an endpoint whose response is computed and not generated: embeddings, rankings,
// tokens. What it computes is sent to backends by the same pipeline as a chat.

import type { ErrorFormat } from '#http/error-format.ts';
import type { Task } from '#inference/engine.ts';
import { inferenceErrorFormat } from '#inference/errors.ts';
import type { Computation, ResponseFormat } from '#inference/serving/response-format.ts';

export const toComputedFormat = (
  operation: string,
  computation: Computation,
  errors: ErrorFormat = inferenceErrorFormat,
): ResponseFormat => ({
  operation,
  errors,
  computation,
  toWhole: nothingGenerated,
  openStream: nothingGenerated,
});

function nothingGenerated(): never {
  throw new Error('The response to this request is computed, not generated');
}

/** The texts as prompts without a completion, by which the request is estimated, routed and, if need be, counted. */
export const toReadTask = (
  model: string,
  texts: readonly (string | readonly number[])[],
  priority?: number | null,
): Task => ({
  kind: 'completion',
  body: {
    model,
    prompt: texts as string[] | number[][],
    max_tokens: 0,
    ...(priority != null && { priority }),
  },
});
