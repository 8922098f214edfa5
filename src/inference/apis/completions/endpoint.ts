// POST /v1/completions.

import { checkSampling } from '#inference/apis/check-sampling.ts';
import { defineEndpoint } from '#inference/apis/endpoint.ts';
import { created, model, usage } from '#inference/apis/example-values.ts';
import { toOpenAiFormat } from '#inference/apis/openai-format.ts';
import { completionResponses } from '#inference/apis/response-schemas.ts';
import { invalidRequest, invalidValue } from '#inference/errors.ts';
import { CompletionRequest } from '#inference/schema.ts';

export const completionEndpoint = defineEndpoint({
  url: '/v1/completions',
  operation: 'text_completion',
  summary: 'Continue a text',
  text: {
    description:
      'Continues one or several texts, as OpenAI’s legacy completions do. Prefer chat completions for models that ' +
      'follow instructions.',
    body: { model, prompt: 'A millrace is', max_tokens: 16 },
    response: {
      id: 'cmpl-8f14e45fceea167a',
      object: 'text_completion',
      created,
      model,
      choices: [
        { index: 0, text: ' a channel.', logprobs: null, finish_reason: 'stop', stop_reason: null },
      ],
      usage,
    },
  },
  body: CompletionRequest,
  responses: completionResponses,
  translate(body) {
    checkCompletion(body);
    const task = { kind: 'completion', body } as const;
    return { task, format: toOpenAiFormat(task) };
  },
});

/** Checks what a schema can't express: members that are only valid together. Throws InferenceError. */
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
