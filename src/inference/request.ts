// A request to an inference API: who sent it, which conversation it belongs to, and where its response goes.

import type { IncomingHttpHeaders } from 'node:http';
import type { Reservation } from '#accounts/limits/request-limiter.ts';
import type { Principal } from '#accounts/principal.ts';
import type { UsageRows } from '#accounts/usage/entry.ts';
import type { HeaderList } from '#http/response-headers.ts';
import type { ServedRequest } from '#inference/serving/meter.ts';
import type { Delivery } from './delivery.ts';
import type { Task } from './engine.ts';

/** The request's id and its caller, known before the body is read. */
export interface RequestIdentity {
  /** Id of the request, never reused. */
  readonly id: string;
  readonly caller: Caller;
  /** When the request arrived, on the clock of `performance.now`. */
  readonly begunMs: number;
  /** Set for a request that no client waits for. */
  readonly background?: Background;
}

export interface InferenceRequest extends RequestIdentity {
  readonly headers: IncomingHttpHeaders;
  /** Size of the request's body. */
  readonly bodyBytes: number;
  readonly delivery: Delivery;
  /** Called once with what served it. Undefined for a request without a line in the access log. */
  readonly onServed?: ((served: ServedRequest) => void) | undefined;
  /** Set if the request was admitted before it is served. */
  readonly reservation?: Reservation | undefined;
  /** Headers that every response to the request carries. */
  readonly fixedHeaders: Readonly<HeaderList>;
}

/** A request that takes only capacity that no other request waits for, at a price of its own. */
interface Background {
  /** Multiple of the model's price. */
  readonly priceFactor: number;
  /** Takes the request's usage row in place of the recorder. */
  readonly usageRows: UsageRows;
}

/** An API key, or a person who is signed in. */
export interface Caller {
  readonly accountId: string;
  readonly keyId: string | null;
  readonly userId: string | null;
}

export const toCaller = (principal: Principal): Caller => ({
  accountId: principal.accountId,
  keyId: principal.kind === 'key' ? principal.keyId : null,
  userId: principal.kind === 'key' ? null : principal.userId,
});

/** The unit of fairness between callers: an API key, or all sessions of a person. */
export const toSharer = ({ keyId, userId, accountId }: Caller): string =>
  keyId ?? userId ?? accountId;

export const elapsedMs = ({ begunMs }: RequestIdentity) => performance.now() - begunMs;

/** Adds the time since the request arrived to the headers of its response. */
export function withElapsed(request: RequestIdentity, headers: HeaderList): HeaderList {
  headers.push('openai-processing-ms', Math.round(elapsedMs(request)));
  return headers;
}

/** The model named in an unchecked body; empty if it names none. */
export function modelIn(body: unknown): string {
  const { model } = (body ?? {}) as { model?: unknown };
  return typeof model === 'string' ? model : '';
}

/**
 * Headers by which agents name their conversation. All its turns prefer the backend that holds its
 * prefix, even after the agent has compacted its messages. opencode sends the first two, Codex the
 * next two, Claude Code the last.
 */
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
