// POST /v1/messages and POST /v1/messages/count_tokens.

import { checkChat } from '#inference/apis/check.ts';
import { type Api, defineEndpoint } from '#inference/apis/endpoint.ts';
import { id, messages, model, text } from '#inference/apis/example-values.ts';
import { checkAs } from '#inference/serving/own-names.ts';
import { messagesErrorFormat } from './errors.ts';
import { createMessagesFormat } from './format.ts';
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
  text: {
    description:
      'Answers a list of messages, as Anthropic’s Messages API does, with any model. With `stream: true` the answer ' +
      'arrives as server-sent events, from `message_start` to `message_stop`. Members and blocks that only other ' +
      'servers know are ignored.',
    body: { model, messages, max_tokens: 64 },
    response: {
      id: `msg_${id}`,
      type: 'message',
      role: 'assistant',
      model,
      content: [{ type: 'text', text }],
      stop_reason: 'end_turn',
      stop_sequence: null,
      usage: {
        input_tokens: 13,
        cache_creation_input_tokens: 0,
        cache_read_input_tokens: 0,
        output_tokens: 12,
      },
    },
  },
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
  text: {
    description:
      'Returns how many tokens the prompt of `POST /v1/messages` would have, counted by the model’s own backend with ' +
      'its template and the tools. It generates nothing and costs nothing.',
    body: { model, messages },
    response: { input_tokens: 13 },
  },
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
