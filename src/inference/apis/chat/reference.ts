// The API reference of chat completions.

import type { EndpointText } from '#inference/apis/endpoint.ts';
import { created, messages, model, text, usage } from '#inference/apis/example-values.ts';

export const chatText: EndpointText = {
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
};
