// The API reference of text completions.

import type { EndpointText } from '#inference/apis/endpoint.ts';
import { created, model, usage } from '#inference/apis/example-values.ts';

export const completionText: EndpointText = {
  description:
    'Continues one or several texts, as OpenAI’s legacy completions do. Prefer chat completions for models that ' +
    'follow instructions.',
  body: { model, prompt: 'A millrace is', max_tokens: 16 },
  response: {
    id: 'cmpl-8f14e45fceea167a',
    object: 'text_completion',
    created,
    model,
    choices: [
      { index: 0, text: ' a channel.', logprobs: null, finish_reason: 'stop', stop_reason: null },
    ],
    usage,
  },
};
