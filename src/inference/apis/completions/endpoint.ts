// POST /v1/completions.

import { defineEndpoint } from '#inference/apis/endpoint.ts';
import { toOpenAiFormat } from '#inference/apis/openai-format.ts';
import { completionResponses } from '#inference/apis/response-schemas.ts';
import { CompletionRequest } from '#inference/schema.ts';
import { checkCompletion } from './check.ts';
import { completionText } from './reference.ts';

export const completionEndpoint = defineEndpoint({
  url: '/v1/completions',
  operation: 'text_completion',
  summary: 'Continue a text',
  text: completionText,
  body: CompletionRequest,
  responses: completionResponses,
  translate(body) {
    checkCompletion(body);
    const task = { kind: 'completion', body } as const;
    return { task, format: toOpenAiFormat(task) };
  },
});
