// POST /v1/chat/completions.

import { checkChat } from '#inference/apis/check.ts';
import { defineEndpoint } from '#inference/apis/endpoint.ts';
import { created, messages, model, text, usage } from '#inference/apis/example-values.ts';
import { toOpenAiFormat } from '#inference/apis/openai-format.ts';
import { chatResponses } from '#inference/apis/response-schemas.ts';
import { ChatRequest } from '#inference/schema.ts';
import { toFunctionsFormat, toToolRequest, usesFunctions } from './legacy-functions.ts';

export const chatEndpoint = defineEndpoint({
  url: '/v1/chat/completions',
  operation: 'chat',
  summary: 'Answer a conversation',
  text: {
    description:
      'Answers a list of messages, as OpenAI’s chat completions do. With `stream: true` the answer arrives as ' +
      'server-sent events, which end with `data: [DONE]`. The `x-served-by` header names what answered; it is ' +
      '`builtin` if the stand-in answered.',
    body: { model, messages, max_tokens: 64 },
    response: {
      id: 'chatcmpl-8f14e45fceea167a',
      object: 'chat.completion',
      created,
      model,
      choices: [
        {
          index: 0,
          message: { role: 'assistant', content: text, refusal: null },
          logprobs: null,
          finish_reason: 'stop',
        },
      ],
      usage,
    },
  },
  body: ChatRequest,
  responses: chatResponses,
  translate(body) {
    checkChat(body);
    const task = { kind: 'chat', body: toToolRequest(body) } as const;
    return { task, format: usesFunctions(body) ? toFunctionsFormat(task) : toOpenAiFormat(task) };
  },
});
