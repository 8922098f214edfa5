// Turns the conversation into a chat request.

import type { ChatRequest } from '#inference/schema.ts';
import { sampleQuestion } from '../code-samples/chat.ts';
import { type Conversation, newTurn, type Turn, toPromptTurns } from './conversation.ts';
import { findSettingError, settingFields } from './setting-fields.ts';

/** Why the request can't be sent; null if it can. Tools and schema must be valid JSON. */
export function findProblem({ tools, schema, settings }: Conversation): string | null {
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

/** Responses that failed before their first token are left out. */
export function toRequest(conversation: Conversation, model: string): ChatRequest {
  const { system, settings, turns, logprobs } = conversation;
  const { stop, ...numbers } = settings;
  const chosen = Object.entries(numbers).filter(([, value]) => value !== null);
  const tools = parse(conversation.tools);
  const schema = parse(conversation.schema);
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
export function toShownRequest(conversation: Conversation, model: string): ChatRequest {
  const asked = toPromptTurns(conversation.turns);
  const turns = asked.length > 0 ? asked : [newTurn('user', sampleQuestion)];
  return toRequest({ ...conversation, turns }, model);
}

/** Tool calls without results are left out: a model would wait for the results. */
function toMessages(turn: Turn, next: Turn | undefined): ChatRequest['messages'] {
  const { role, text, toolCalls = [], toolCallId } = turn;
  if (role === 'user') return [{ role, content: text }];
  if (role === 'tool') return [{ role, content: text, tool_call_id: toolCallId ?? '' }];
  if (next?.role !== 'tool') return text === '' ? [] : [{ role, content: text }];
  const tool_calls = toolCalls.map(({ id, ...call }) => ({
    id,
    type: 'function' as const,
    function: call,
  }));
  return [{ role, content: text || null, tool_calls }];
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
