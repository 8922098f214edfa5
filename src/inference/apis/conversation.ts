// The conversation that a request belongs to, by the ids that agents send with it. All turns of a conversation prefer
// the backend that holds its prefix, even after the agent has compacted its messages.

import type { IncomingHttpHeaders } from 'node:http';
import type { Task } from '#inference/engine.ts';
import type { InferenceRequest } from '#inference/request.ts';

/** opencode sends the first two, Codex the next two, Claude Code the last. */
const headerNames = [
  'x-session-affinity',
  'x-session-id',
  'session-id',
  'thread-id',
  'x-claude-code-session-id',
] as const;

/** More of an id is not hashed. */
const maxIdLength = 200;

export function conversationOf(headers: IncomingHttpHeaders, body: object): string | undefined {
  for (const name of headerNames) {
    const id = headers[name];
    if (typeof id === 'string' && id !== '') return id;
  }
  const { prompt_cache_key: key } = body as { prompt_cache_key?: unknown };
  return typeof key === 'string' && key !== '' ? key : undefined;
}

/** Adds the conversation to a chat. An id is the account's own: it can't steer the requests of another one. */
export function withConversation(
  task: Task,
  { caller, headers }: Pick<InferenceRequest, 'caller' | 'headers'>,
): Task {
  if (task.kind !== 'chat') return task;
  const id = task.conversation ?? conversationOf(headers, task.body);
  if (id === undefined) return task;
  return { ...task, conversation: `${caller.accountId} ${id.slice(0, maxIdLength)}` };
}
