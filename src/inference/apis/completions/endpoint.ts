// POST /v1/completions.

import { checkCompletion } from '#inference/apis/check.ts';
import { defineEndpoint } from '#inference/apis/endpoint.ts';
import { created, model, usage } from '#inference/apis/example-values.ts';
import { toOpenAiFormat } from '#inference/apis/openai-format.ts';
import { completionResponses } from '#inference/apis/response-schemas.ts';
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
