// A request of /v1 that was let in, and how its answer is written: past Fastify's reply, whose serializer and
// hooks a response that is one string does not need.

import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import { pipeline, Readable } from 'node:stream';
import type { Principal } from '#accounts/principal.ts';
import type { Rendered } from '#http/error-format.ts';
import { type HeaderList, toHeaderObject } from '#http/header-list.ts';
import type { Task, WrittenResponse } from './engine.ts';

/** Whoever asks, before it is known whether what they ask can be read. */
export interface Guest {
  /** Of the request; unique for ever. */
  readonly id: string;
  readonly caller: Caller;
  /** On the clock of `performance.now`. */
  readonly begunMs: number;
}

export interface Visit extends Guest {
  readonly headers: IncomingHttpHeaders;
  /** Of the request's body. */
  readonly bodyBytes: number;
  readonly response: ServerResponse;
}

/** A key, or a person who is signed in. */
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

/** Who counts as one where callers share: a key, or all sessions of a person. */
export const toSharer = ({ keyId, userId, accountId }: Caller): string =>
  keyId ?? userId ?? accountId;

export const elapsedMs = ({ begunMs }: Guest) => performance.now() - begunMs;

/** By route. */
export const kinds: ReadonlyMap<string | undefined, Task['kind']> = new Map([
  ['/v1/chat/completions', 'chat'],
  ['/v1/completions', 'completion'],
]);

/** The model that a body asks for, which may be anything; empty where it says none. */
export function modelIn(body: unknown): string {
  const { model } = (body ?? {}) as { model?: unknown };
  return typeof model === 'string' ? model : '';
}

/** A whole answer. The headers are the caller's to make and nobody's afterwards. */
export function sendAnswer(visit: Visit, status: number, headers: HeaderList, body: unknown) {
  const text = JSON.stringify(body);
  const length = Buffer.byteLength(text);
  headers.push('openai-processing-ms', Math.round(elapsedMs(visit)));
  headers.push('content-type', 'application/json; charset=utf-8', 'content-length', length);
  // Where each character is one byte, Node joins the text with the headers into one write.
  const encoding = length === text.length ? 'latin1' : 'utf8';
  visit.response.writeHead(status, headers).end(text, encoding);
}

/** A large answer, in slices as the client takes them: with TLS, each write is encrypted at once. */
export function sendWritten(visit: Visit, headers: HeaderList, written: WrittenResponse): void {
  const usage = Buffer.from(JSON.stringify(written.usage));
  const parts = [written.before, usage, written.after];
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  headers.push('openai-processing-ms', Math.round(elapsedMs(visit)));
  headers.push('content-type', 'application/json; charset=utf-8', 'content-length', length);
  const { response } = visit;
  response.writeHead(200, headers);
  // It fails if the client leaves, which whoever watches the response is told.
  pipeline(Readable.from(toSlices(parts), { objectMode: true }), response, () => {});
}

const sliceBytes = 256 * 1024;

function* toSlices(parts: readonly Uint8Array[]): Generator<Uint8Array> {
  for (const part of parts)
    for (let at = 0; at < part.length; at += sliceBytes) yield part.subarray(at, at + sliceBytes);
}

export function sendFailure(visit: Visit, headers: HeaderList, rendered: Rendered): void {
  // Some may have been said before it failed.
  const all = { ...toHeaderObject(headers), ...rendered.headers };
  sendAnswer(visit, rendered.status, Object.entries(all).flat(), rendered.body);
}
