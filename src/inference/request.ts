// A request to an inference API: who sent it, and where its response goes.

import type { IncomingHttpHeaders } from 'node:http';
import type { Reservation } from '#accounts/limits/request-limiter.ts';
import type { Principal } from '#accounts/principal.ts';
import type { UsageRows } from '#accounts/usage/entry.ts';
import type { HeaderList } from '#http/header-list.ts';
import type { Delivery } from './delivery.ts';

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
  /** Set if the request was admitted before it is served. */
  readonly reservation?: Reservation | undefined;
  /** Headers that every response to the request carries. */
  readonly fixedHeaders: Readonly<HeaderList>;
}

/** A request that takes only capacity that no other request waits for, at a price of its own. */
export interface Background {
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
