// Translates Ollama's requests into tasks.

import type { Task } from '#inference/engine.ts';
import { invalidValue } from '#inference/errors.ts';
import type { ChatMessage } from '#inference/schema.ts';
import type { OwnNames } from '#inference/serving/own-names.ts';
import type { OllamaChatRequest, OllamaGenerateRequest, OllamaMessage } from './schema.ts';

/** Members of a chat by Ollama's names. */
const members: OwnNames['members'] = {
  response_format: 'format',
  max_tokens: 'options.num_predict',
  repetition_penalty: 'options.repeat_penalty',
  ...Object.fromEntries(
    [
      'temperature',
      'top_p',
      'top_k',
      'min_p',
      'seed',
      'stop',
      'presence_penalty',
      'frequency_penalty',
    ].map((name) => [name, `options.${name}`]),
  ),
};

export const toChatNames = ({ messages }: OllamaChatRequest): OwnNames => ({
  members,
  messages: (messages ?? []).map((message, index) => {
    const place = `messages[${index}]`;
    return { place, parts: toPartPlaces(message, `${place}.content`, `${place}.images`) };
  }),
});

export const toGenerateNames = ({ prompt, system, images }: OllamaGenerateRequest): OwnNames => ({
  members: { ...members, messages: 'prompt' },
  messages: [
    ...((system ?? '') === '' ? [] : [{ place: 'system' }]),
    { place: 'prompt', parts: toPartPlaces({ content: prompt, images }, 'prompt', 'images') },
  ],
});

/** Where the parts of `toContent` come from. */
const toPartPlaces = (
  { content, images }: Pick<OllamaMessage, 'content' | 'images'>,
  text: string,
  image: string,
): string[] => [
  ...((content ?? '') === '' ? [] : [text]),
  ...(images ?? []).map((_, index) => `${image}[${index}]`),
];

export function toChatTask(request: OllamaChatRequest): Task {
  const { tools } = request;
  const messages = toMessages(request.messages ?? []);
  const functions = (tools ?? []).map((tool) => ({ ...tool, type: 'function' as const }));
  const body = {
    ...toSampling(request),
    ...toThinking(request),
    messages,
    ...(functions.length > 0 && { tools: functions }),
  };
  return { kind: 'chat', body, fitsMaximum: true };
}

/** A raw prompt and one with a suffix are continued as they are; any other is a message to the model. */
export function toGenerateTask(request: OllamaGenerateRequest): Task {
  const { prompt, system, suffix, images, raw } = request;
  const text = prompt ?? '';
  if (raw === true || (suffix ?? '') !== '') {
    return { kind: 'completion', body: { ...toSampling(request), prompt: text, suffix } };
  }
  const own: OllamaMessage[] = [{ role: 'user', content: text, images }];
  const messages =
    (system ?? '') === '' ? own : [{ role: 'system' as const, content: system }, ...own];
  return {
    kind: 'chat',
    body: { ...toSampling(request), ...toThinking(request), messages: toMessages(messages) },
    fitsMaximum: true,
  };
}

/** Names without a tag and with `latest` mean the same. */
export const toModelId = (model: string) => model.replace(/:latest$/, '');

function toSampling(request: OllamaChatRequest | OllamaGenerateRequest) {
  const { temperature, top_p, top_k, min_p, seed, stop, num_predict, ...others } =
    request.options ?? {};
  const limit = num_predict ?? -1;
  return {
    model: toModelId(request.model),
    stream: request.stream !== false,
    // Ollama sets no upper bound.
    temperature: temperature == null ? undefined : Math.min(temperature, 2),
    top_p,
    top_k,
    min_p,
    seed,
    stop,
    repetition_penalty: others.repeat_penalty,
    presence_penalty: others.presence_penalty,
    frequency_penalty: others.frequency_penalty,
    max_tokens: limit > 0 ? limit : undefined,
    ...toResponseFormat(request.format),
  };
}

const toThinking = ({ think }: Pick<OllamaChatRequest, 'think'>) => ({
  ...(typeof think === 'string' && { reasoning_effort: think }),
  ...(think === false && { chat_template_kwargs: { enable_thinking: false } }),
});

function toResponseFormat(format: OllamaChatRequest['format']) {
  if (format == null || format === '') return null;
  if (format === 'json') return { response_format: { type: 'json_object' as const } };
  const json_schema = { name: 'format', schema: format as Record<string, unknown> };
  return { response_format: { type: 'json_schema' as const, json_schema } };
}

/** Ollama's calls have no ids: results belong to the calls before them, in their order or by name. */
function toMessages(messages: readonly OllamaMessage[]): ChatMessage[] {
  let calls: { id: string; name: string }[] = [];
  return messages.map((message, index) => {
    const { role, content, thinking, tool_calls: given } = message;
    if (role === 'tool') {
      const at = calls.findIndex(({ name }) => name === message.tool_name);
      const [call] = calls.splice(Math.max(at, 0), 1);
      if (call === undefined)
        throw invalidValue(`messages[${index}]`, 'A tool message must follow the call it answers.');
      return { role, content: content ?? '', tool_call_id: call.id };
    }
    if (role !== 'assistant') return { role, content: toContent(message) };
    const toolCalls = (given ?? []).map(({ function: call }, number) => ({
      id: toCallId(index, number),
      type: 'function' as const,
      function: { name: call.name, arguments: JSON.stringify(call.arguments ?? {}) },
    }));
    if (toolCalls.length > 0)
      calls = toolCalls.map((it) => ({ id: it.id, name: it.function.name }));
    return {
      role,
      content: content ?? '',
      ...((thinking ?? '') !== '' && { reasoning_content: thinking }),
      ...(toolCalls.length > 0 && { tool_calls: toolCalls }),
    };
  });
}

/** Nine digits: Mistral's templates take no other ids. The same in each request, so that the prefix stays cached. */
const toCallId = (message: number, call: number) =>
  `${String(message % 1_000_000).padStart(6, '0')}${String(call).padStart(3, '0')}`;

function toContent({ content, images }: OllamaMessage): ChatMessage['content'] {
  const text = content ?? '';
  if (images == null || images.length === 0) return text;
  return [
    ...(text === '' ? [] : [{ type: 'text', text }]),
    ...images.map((image) => ({ type: 'image_url', image_url: { url: toDataUrl(image) } })),
  ];
}

/** Images are base64 without their type, which the first characters tell. */
function toDataUrl(image: string): string {
  if (image.startsWith('data:')) return image;
  const [, type = 'png'] = beginnings.find(([beginning]) => image.startsWith(beginning)) ?? [];
  return `data:image/${type};base64,${image}`;
}

const beginnings = [
  ['/9j/', 'jpeg'],
  ['R0lGOD', 'gif'],
  ['UklGR', 'webp'],
] as const;
