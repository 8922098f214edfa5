// The API reference of the Messages API.

import type { EndpointText } from '#inference/apis/endpoint.ts';
import { id, messages, model, text } from '#inference/apis/example-values.ts';

export const messageText: EndpointText = {
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
};

export const countText: EndpointText = {
  description:
    'Returns how many tokens the prompt of `POST /v1/messages` would have, counted by the model’s own backend with ' +
    'its template and the tools. It generates nothing and costs nothing.',
  body: { model, messages },
  response: { input_tokens: 13 },
};
