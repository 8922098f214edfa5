// The API reference of the Responses API.

import type { EndpointText } from '#inference/apis/endpoint.ts';
import { created, id, model, text } from '#inference/apis/example-values.ts';

const usage = {
  input_tokens: 13,
  input_tokens_details: { cached_tokens: 0 },
  output_tokens: 12,
  output_tokens_details: { reasoning_tokens: 0 },
  total_tokens: 25,
};

export const responseText: EndpointText = {
  description:
    'Answers a conversation of items, as OpenAI’s Responses API does. `input` is a text or a list of messages, tool ' +
    'calls, their outputs and reasoning. With `stream: true` the response arrives as server-sent events with a type ' +
    'and a number each. It is stored unless `store` is false, and `previous_response_id` continues a stored one.',
  body: { model, input: 'What is a millrace?', max_output_tokens: 64 },
  response: {
    id: `resp_${id}`,
    object: 'response',
    created_at: created,
    status: 'completed',
    model,
    output: [
      {
        id: `msg_${id}0000`,
        type: 'message',
        status: 'completed',
        role: 'assistant',
        content: [{ type: 'output_text', text, annotations: [], logprobs: [] }],
      },
    ],
    error: null,
    incomplete_details: null,
    usage: usage,
  },
};

export const inputTokensText: EndpointText = {
  description:
    'Returns how many tokens the prompt of `POST /v1/responses` would have, with its template and tools. It ' +
    'generates nothing and costs nothing.',
  body: { model, input: 'What is a millrace?' },
  response: { object: 'response.input_tokens', input_tokens: 13 },
};

export const compactText: EndpointText = {
  description:
    'Replaces a long conversation by its newest messages and a summary that the model writes. Send the output as the ' +
    'beginning of the next `input`. The summary is sealed: only this server can read it, for your account.',
  body: { model, input: 'What is a millrace?' },
  response: {
    id: `resp_${id}`,
    object: 'response.compaction',
    created_at: created,
    output: [{ id: `cmp_${id}`, type: 'compaction', encrypted_content: 'mJ0x…' }],
    usage: usage,
  },
};
