// POST /v1/chat/completions.

import { defineEndpoint } from '#inference/apis/endpoint.ts';
import { toOpenAiFormat } from '#inference/apis/openai-format.ts';
import { chatResponses } from '#inference/apis/response-schemas.ts';
import { ChatRequest } from '#inference/schema.ts';
import { checkChat } from './check.ts';
import { toFunctionsFormat } from './functions-format.ts';
import { toToolRequest, usesFunctions } from './legacy-functions.ts';
import { chatText } from './reference.ts';

export const chatEndpoint = defineEndpoint({
  url: '/v1/chat/completions',
  operation: 'chat',
  summary: 'Answer a conversation',
  text: chatText,
  body: ChatRequest,
  responses: chatResponses,
  translate(body) {
    checkChat(body);
    const task = { kind: 'chat', body: toToolRequest(body) } as const;
    return { task, format: usesFunctions(body) ? toFunctionsFormat(task) : toOpenAiFormat(task) };
  },
});
