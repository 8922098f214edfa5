// What Ollama's endpoints do, with an example each. Ollama's own pages describe them for clients.

import type { EndpointText } from '#inference/apis/endpoint.ts';
import { messages, model } from '#inference/apis/example-values.ts';

const options = { num_predict: 1 };

export const chatText: EndpointText = {
  description: 'Answers a list of messages, in lines of JSON unless `stream` is false.',
  body: { model, messages, options, stream: false },
};

export const generateText: EndpointText = {
  description: 'Answers a prompt, in lines of JSON unless `stream` is false.',
  body: { model, prompt: 'What is a millrace?', options, stream: false },
};

export const embedText: EndpointText = {
  description: 'Turns texts into vectors.',
  body: { model: 'nomic-embed-text', input: ['A mill wheel'] },
};
