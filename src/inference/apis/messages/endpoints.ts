// POST /v1/messages and POST /v1/messages/count_tokens.

import { checkChat } from '#inference/apis/chat/check.ts';
import { type Api, defineEndpoint } from '#inference/apis/endpoint.ts';
import { checkAs } from '#inference/apis/own-names.ts';
import { messagesErrorFormat } from './errors.ts';
import { createMessagesFormat } from './format.ts';
import { countText, messageText } from './reference.ts';
import {
  countTokensResponses,
  messagesErrorSchema,
  messagesResponses,
} from './response-schemas.ts';
import { CountTokensRequest, MessagesRequest } from './schema.ts';
import { toNames, toPrompt, toTask } from './translate.ts';

const messagesEndpoint = defineEndpoint({
  url: '/v1/messages',
  operation: 'messages',
  summary: 'Create a message',
  text: messageText,
  body: MessagesRequest,
  responses: messagesResponses,
  translate(body) {
    const task = toTask(body);
    const names = () => toNames(body);
    checkAs(names, () => checkChat(task.body));
    return { task, format: { ...createMessagesFormat(body), names } };
  },
});

const countTokensEndpoint = defineEndpoint({
  url: '/v1/messages/count_tokens',
  operation: 'messages',
  summary: 'Count the tokens of a message',
  text: countText,
  body: CountTokensRequest,
  responses: countTokensResponses,
  translate(body) {
    const prompt = toPrompt(body);
    const names = () => toNames(body);
    checkAs(names, () => checkChat(prompt));
    return {
      counted: { kind: 'chat', body: prompt, describesMedia: true },
      names,
      toAnswer: (tokens) => ({ input_tokens: tokens }),
    };
  },
});

export const messagesApi: Api = {
  prefix: '/v1/messages',
  tag: 'Inference',
  errors: messagesErrorFormat,
  errorSchema: messagesErrorSchema,
  idHeader: 'request-id',
  endpoints: [messagesEndpoint, countTokensEndpoint],
};
