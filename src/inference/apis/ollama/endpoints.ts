// POST /api/chat, POST /api/generate and POST /api/embed.

import { checkChat, checkCompletion } from '#inference/apis/check.ts';
import { toComputedFormat, toReadTask } from '#inference/apis/computed-format.ts';
import { toEmbedding } from '#inference/apis/embeddings/computation.ts';
import {
  type Api,
  defineEndpoint,
  type Generation,
  type Origin,
} from '#inference/apis/endpoint.ts';
import { messages, model } from '#inference/apis/example-values.ts';
import type { Task } from '#inference/engine.ts';
import { modelNotFound } from '#inference/errors.ts';
import { checkAs, type FindNames } from '#inference/serving/own-names.ts';
import { open, Type } from '#lib/schema/schema-builder.ts';
import { ollamaErrorFormat } from './errors.ts';
import {
  chatShape,
  createOllamaFormat,
  generateShape,
  type OllamaShape,
  toLoaded,
} from './format.ts';
import { OllamaChatRequest, OllamaEmbedRequest, OllamaGenerateRequest } from './schema.ts';
import {
  toChatNames,
  toChatTask,
  toGenerateNames,
  toGenerateTask,
  toModelId,
} from './translate.ts';

/** The examples ask for one token. */
const options = { num_predict: 1 };

const toResponses = (description: string) => ({
  200: {
    description,
    content: {
      'application/x-ndjson': { schema: Type.Object({ done: Type.Boolean() }, open) },
    },
  },
});

function load(shape: OllamaShape, model: string, { catalog }: Origin) {
  if (catalog.find(toModelId(model)) === undefined) throw modelNotFound(model);
  return { answer: toLoaded(shape, model) };
}

function generate(shape: OllamaShape, task: Task, names: FindNames): Generation {
  checkAs(names, () => (task.kind === 'chat' ? checkChat(task.body) : checkCompletion(task.body)));
  return { task, format: { ...createOllamaFormat(shape), names } };
}

const ollamaChatEndpoint = defineEndpoint({
  url: '/api/chat',
  operation: 'ollama_chat',
  summary: 'Answer a conversation, as Ollama does',
  text: {
    description: 'Answers a list of messages, in lines of JSON unless `stream` is false.',
    body: { model, messages, options, stream: false },
  },
  body: OllamaChatRequest,
  responses: toResponses('The answer: one object, or one per line unless stream is false.'),
  translate: (body, origin) =>
    (body.messages ?? []).length === 0
      ? load(chatShape, body.model, origin)
      : generate(chatShape, toChatTask(body), () => toChatNames(body)),
});

const ollamaGenerateEndpoint = defineEndpoint({
  url: '/api/generate',
  operation: 'ollama_generate',
  summary: 'Answer a prompt, as Ollama does',
  text: {
    description: 'Answers a prompt, in lines of JSON unless `stream` is false.',
    body: { model, prompt: 'What is a millrace?', options, stream: false },
  },
  body: OllamaGenerateRequest,
  responses: toResponses('The answer: one object, or one per line unless stream is false.'),
  translate: (body, origin) =>
    (body.prompt ?? '') === '' && (body.images ?? []).length === 0
      ? load(generateShape, body.model, origin)
      : generate(generateShape, toGenerateTask(body), () => toGenerateNames(body)),
});

const ollamaEmbedEndpoint = defineEndpoint({
  url: '/api/embed',
  operation: 'ollama_embed',
  summary: 'Embed texts, as Ollama does',
  text: {
    description: 'Turns texts into vectors.',
    body: { model: 'nomic-embed-text', input: ['A mill wheel'] },
  },
  body: OllamaEmbedRequest,
  responses: toResponses('The vectors, in the order of the texts.'),
  translate({ model, input, dimensions }) {
    const inputs = [input].flat();
    const startMs = performance.now();
    const computation = toEmbedding(inputs, dimensions ?? null, ({ vectors, served, usage }) => ({
      model: served.id,
      embeddings: vectors.map((it) => [...it]),
      total_duration: Math.round((performance.now() - startMs) * 1e6),
      load_duration: 0,
      prompt_eval_count: usage.prompt_tokens,
    }));
    const format = toComputedFormat('ollama_embed', computation, ollamaErrorFormat);
    return { task: toReadTask(toModelId(model), inputs), format };
  },
});

export const ollamaApi: Api = {
  prefix: '/api',
  errors: ollamaErrorFormat,
  // Ollama's own examples send JSON with curl's default type.
  anyContentType: true,
  endpoints: [ollamaChatEndpoint, ollamaEmbedEndpoint, ollamaGenerateEndpoint],
};
