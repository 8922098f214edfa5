// The API reference of tokens.

import type { EndpointText } from '#inference/apis/endpoint.ts';
import { model } from '#inference/apis/example-values.ts';

export const tokenizeText: EndpointText = {
  description:
    'Returns the tokens of `prompt`, or of `messages` after the model’s template, as vLLM does. It generates nothing ' +
    'and costs nothing. The same endpoint is at `/tokenize`.',
  body: { model, prompt: 'A mill wheel', return_token_strs: true },
  response: {
    count: 3,
    max_model_len: 131_072,
    tokens: [32, 2606, 13289],
    token_strs: ['A', ' mill', ' wheel'],
  },
};

export const detokenizeText: EndpointText = {
  description: 'Returns the text of token ids. The same endpoint is at `/detokenize`.',
  body: { model, tokens: [32, 2606, 13289] },
  response: { prompt: 'A mill wheel' },
};
