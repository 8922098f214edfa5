// POST /tokenize and /detokenize, as vLLM has them, and the same under /v1, as SGLang has them. They count against the
// rate of requests, but their tokens are not billed.

import { toComputedFormat, toReadTask } from '#inference/apis/computed-format.ts';
import { defineEndpoint, type Endpoint } from '#inference/apis/endpoint.ts';
import { model } from '#inference/apis/example-values.ts';
import { invalidRequest, missingParameter } from '#inference/errors.ts';
import { refuseMedia } from '#inference/images/remote-media.ts';
import type { TokenizeTask } from '#inference/pooling.ts';
import {
  DetokenizeRequest,
  detokenizeResponses,
  TokenizeRequest,
  tokenizeResponses,
} from './schema.ts';

const tokenizeEndpoint = defineEndpoint({
  url: '/tokenize',
  operation: 'tokenize',
  summary: 'Turn a text or a conversation into tokens',
  text: {
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
  },
  body: TokenizeRequest,
  responses: tokenizeResponses,
  translate(body) {
    const tokenized = toTokenizeTask(body);
    const format = toComputedFormat('tokenize', {
      ability: 'tokenize texts',
      modelKind: null,
      repeatedBytes: 0,
      start: ({ tokenize }) =>
        tokenize &&
        (async ({ signal }) => {
          const { tokens, texts } = await tokenize(tokenized, signal);
          const toBody = ({ contextWindow }: { contextWindow: number }) => ({
            count: tokens.length,
            max_model_len: contextWindow,
            tokens,
            token_strs: texts,
          });
          return { promptTokens: 0, toBody };
        }),
    });
    return { task: toReadTask(body.model, ['']), format };
  },
});

const detokenizeEndpoint = defineEndpoint({
  url: '/detokenize',
  operation: 'tokenize',
  summary: 'Turn tokens into text',
  text: {
    description: 'Returns the text of token ids. The same endpoint is at `/detokenize`.',
    body: { model, tokens: [32, 2606, 13289] },
    response: { prompt: 'A mill wheel' },
  },
  body: DetokenizeRequest,
  responses: detokenizeResponses,
  translate({ model, tokens }) {
    const format = toComputedFormat('tokenize', {
      ability: 'detokenize tokens',
      modelKind: null,
      repeatedBytes: 0,
      start: ({ detokenize }) =>
        detokenize &&
        (async ({ signal }) => {
          const prompt = await detokenize(tokens, signal);
          return { promptTokens: 0, toBody: () => ({ prompt }) };
        }),
    });
    return { task: toReadTask(model, ['']), format };
  },
});

export const shortTokenEndpoints: readonly Endpoint[] = [tokenizeEndpoint, detokenizeEndpoint];

export const tokenEndpoints: readonly Endpoint[] = shortTokenEndpoints.map((endpoint) => ({
  ...endpoint,
  url: `/v1${endpoint.url}`,
}));

/** Throws InferenceError. */
function toTokenizeTask(body: TokenizeRequest): TokenizeTask {
  const { prompt, messages, add_special_tokens, return_token_strs } = body;
  const withTexts = return_token_strs === true;
  if (prompt !== undefined && messages !== undefined)
    throw invalidRequest('invalid_value', 'messages', 'Send either prompt or messages, not both.');
  if (prompt !== undefined)
    return { source: { prompt }, addsSpecial: add_special_tokens ?? true, withTexts };
  if (messages === undefined) throw missingParameter('prompt', 'Send either prompt or messages.');
  refuseMedia(messages);
  return {
    source: { chat: { ...body, messages } },
    addsSpecial: add_special_tokens ?? false,
    withTexts,
  };
}
