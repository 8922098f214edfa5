// Turns the conversation into a chat request.

import type { ChatMessage, ChatRequest } from '#inference/schema.ts';
import { sampleQuestion } from '../code-samples/chat.ts';
import { type Chat, newTurn, type ShownTurn, toPromptTurns } from './conversation.ts';
import { findSettingError, settingFields } from './setting-fields.ts';

/** Why the request can't be sent; null if it can. Tools and schema must be valid JSON. */
export function findProblem({ tools, schema, settings }: Chat): string | null {
  for (const field of settingFields) {
    const error = findSettingError(field, settings[field.name]);
    if (error !== null) return error;
  }
  if (tools.trim() !== '' && !Array.isArray(parse(tools))) {
    return 'Tools must be a JSON array. Fix or clear them to send messages.';
  }
  if (schema.trim() !== '' && !isObject(parse(schema))) {
    return 'The response schema must be a JSON object. Fix or clear it to send messages.';
  }
  return null;
}

/** Responses that failed before their first token are left out, and so is the reasoning of all. */
export function toRequest(chat: Chat, model: string): ChatRequest {
  const { system, settings, turns, logprobs } = chat;
  const { stop, ...numbers } = settings;
  const chosen = Object.entries(numbers).filter(([, value]) => value != null);
  const tools = parse(chat.tools);
  const schema = parse(chat.schema);
  return {
    model,
    messages: [
      ...(system.trim() === '' ? [] : [{ role: 'system' as const, content: system }]),
      ...turns.flatMap((turn, index) => toMessages(turn, turns[index + 1])),
    ],
    ...Object.fromEntries(chosen),
    ...(stop ? { stop } : {}),
    ...(Array.isArray(tools) ? { tools } : {}),
    ...(isObject(schema)
      ? { response_format: { type: 'json_schema', json_schema: { name: 'answer', schema } } }
      : {}),
    ...(logprobs ? { logprobs, top_logprobs: 4 } : {}),
    stream: true,
    stream_options: { include_usage: true },
  };
}

/** The request behind the response on screen. In an empty conversation it asks a sample question. */
export function toShownRequest(chat: Chat, model: string): ChatRequest {
  const asked = toPromptTurns(chat.turns);
  const turns = asked.length > 0 ? asked : [newTurn('user', sampleQuestion)];
  return toRequest({ ...chat, turns }, model);
}

/** Tool calls without results are left out: a model would wait for the results. */
function toMessages(turn: ShownTurn, next: ShownTurn | undefined): ChatMessage[] {
  const { role, text, tool_calls = [], tool_call_id } = turn;
  if (role === 'user') return [{ role, content: toContentParts(turn) }];
  if (role === 'tool') return [{ role, content: text, tool_call_id: tool_call_id ?? '' }];
  if (next?.role !== 'tool') return text === '' ? [] : [{ role, content: text }];
  const calls = tool_calls.map(({ id, ...call }) => ({
    id,
    type: 'function' as const,
    function: call,
  }));
  return [{ role, content: text || null, tool_calls: calls }];
}

function toContentParts({ text, images = [] }: ShownTurn): NonNullable<ChatMessage['content']> {
  if (images.length === 0) return text;
  return [
    ...(text === '' ? [] : [{ type: 'text', text }]),
    ...images.map((url) => ({ type: 'image_url', image_url: { url } })),
  ];
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
