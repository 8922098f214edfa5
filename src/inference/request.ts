// A request to /v1, and how its response is sent: directly on Node's response, because a body that is one string
// needs neither the serializer nor the hooks of Fastify's reply.

import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import { pipeline, Readable } from 'node:stream';
import type { Principal } from '#accounts/principal.ts';
import type { Rendered } from '#http/error-format.ts';
import { type HeaderList, toHeaderObject } from '#http/header-list.ts';
import type { Task, WrittenResponse } from './engine.ts';

/** The request's id and its caller, known before the body is read. */
export interface RequestIdentity {
  /** Id of the request, never reused. */
  readonly id: string;
  readonly caller: Caller;
  /** When the request arrived, on the clock of `performance.now`. */
  readonly begunMs: number;
}

export interface InferenceRequest extends RequestIdentity {
  readonly headers: IncomingHttpHeaders;
  /** Size of the request's body. */
  readonly bodyBytes: number;
  readonly response: ServerResponse;
  /** Headers that every response to the request carries. */
  readonly fixedHeaders: Readonly<HeaderList>;
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

/** Kind of task by route. */
export const kinds: ReadonlyMap<string | undefined, Task['kind']> = new Map([
  ['/v1/chat/completions', 'chat'],
  ['/v1/completions', 'completion'],
]);

/** The model named in an unchecked body; empty if it names none. */
export function modelIn(body: unknown): string {
  const { model } = (body ?? {}) as { model?: unknown };
  return typeof model === 'string' ? model : '';
}

/** Sends a whole response. The headers must not be used afterwards. */
export function sendResponse(
  request: InferenceRequest,
  status: number,
  headers: HeaderList,
  body: unknown,
) {
  const text = JSON.stringify(body);
  const length = Buffer.byteLength(text);
  headers.push('openai-processing-ms', Math.round(elapsedMs(request)));
  headers.push('content-type', 'application/json; charset=utf-8', 'content-length', length);
  // If each character is one byte, Node sends the text and the headers in one write.
  const encoding = length === text.length ? 'latin1' : 'utf8';
  request.response.writeHead(status, headers).end(text, encoding);
}

/** Sends a large response in slices, as the client takes them: with TLS, each write is encrypted at once. */
export function sendWritten(
  request: InferenceRequest,
  headers: HeaderList,
  written: WrittenResponse,
): void {
  const usage = Buffer.from(JSON.stringify(written.usage));
  const parts = [written.before, usage, written.after];
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  headers.push('openai-processing-ms', Math.round(elapsedMs(request)));
  headers.push('content-type', 'application/json; charset=utf-8', 'content-length', length);
  const { response } = request;
  response.writeHead(200, headers);
  // The pipeline fails if the client disconnects, which ClientDisconnect reports.
  pipeline(Readable.from(toSlices(parts), { objectMode: true }), response, () => {});
}

const sliceBytes = 256 * 1024;

function* toSlices(parts: readonly Uint8Array[]): Generator<Uint8Array> {
  for (const part of parts)
    for (let at = 0; at < part.length; at += sliceBytes) yield part.subarray(at, at + sliceBytes);
}

export function sendError(
  request: InferenceRequest,
  headers: HeaderList,
  rendered: Rendered,
): void {
  // Headers that were set before the failure are kept.
  const all = { ...toHeaderObject(headers), ...rendered.headers };
  sendResponse(request, rendered.status, Object.entries(all).flat(), rendered.body);
}
