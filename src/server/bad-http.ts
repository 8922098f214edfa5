// Responds to bytes that Node's HTTP parser rejects: there is no request then, only a socket. Also chooses the
// error format for a URL and writes JSON to a bare socket.

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { accountsErrorFormat } from '#accounts/errors.ts';
import { cloudErrorFormat } from '#cloud/errors.ts';
import { hasLongBody } from '#http/body/upload-timeout.ts';
import type { ErrorFormat } from '#http/error-format.ts';
import { findApi } from '#inference/apis/apis.ts';
import { Refusal } from '#lib/errors.ts';
import { newId } from '#lib/ids.ts';

/** Node's own names for the request being read and the response being sent; its default handler reads them too. */
type HttpSocket = Socket & {
  parser?: { incoming?: IncomingMessage | null } | null;
  _httpMessage?: ServerResponse | null;
};

interface HttpError extends Error {
  code?: string;
  rawPacket?: unknown;
}

export function createBadHttpHandler() {
  /** Sockets whose error response waits for earlier responses. */
  const waiting = new WeakSet<Socket>();

  /** Requests that were pipelined before the bad bytes are answered first. */
  function answerInTurn(socket: HttpSocket, answer: () => void): void {
    const response = socket._httpMessage ?? null;
    // Node's own listener runs before this one and attaches the next response.
    if (response !== null) response.once('finish', () => answerInTurn(socket, answer));
    else if (socket.writable) answer();
  }

  return (error: HttpError, socket: HttpSocket): void => {
    if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT' && hasLongBody(socket)) return;
    const incoming = socket.parser?.incoming ?? null;
    const response = socket._httpMessage ?? null;
    const isAnswered = incoming?.complete === false && response === null;
    if (error.code === 'ECONNRESET' || !socket.writable || isAnswered) {
      socket.destroy();
      return;
    }
    const answer = () => answerBadHttp(error, incoming, socket);
    if (response === null) answer();
    else if (incoming?.complete === true) {
      if (waiting.has(socket)) return;
      waiting.add(socket);
      answerInTurn(socket, answer);
    }
    // In the middle of a response, ours would become part of it.
    else if (response.headersSent) socket.destroy();
    else answer();
  };
}

function answerBadHttp(error: HttpError, incoming: IncomingMessage | null, socket: Socket): void {
  const start = Buffer.isBuffer(error.rawPacket) ? error.rawPacket.toString('latin1', 0, 2048) : '';
  const named = incoming?.complete === false ? incoming.url : undefined;
  const url = named ?? /^[A-Z]+ (\S+)/.exec(start)?.[1] ?? '/';
  const [line, refusal] = toRefusal(error);
  answerSocket(socket, line, errorFormatOf(url).renderRefusal(refusal).body);
}

function toRefusal({ code }: HttpError): [line: string, Refusal] {
  if (code === 'HPE_HEADER_OVERFLOW') {
    const refusal = new Refusal('too_large', 'The request headers are too large.');
    return ['431 Request Header Fields Too Large', refusal];
  }
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT')
    return ['408 Request Timeout', new Refusal('timed_out', 'The request did not arrive in time.')];
  const isCut = code === 'HPE_INVALID_EOF_STATE';
  const why = isCut
    ? 'The request ended before it was complete.'
    : 'This is not a valid HTTP request.';
  return ['400 Bad Request', new Refusal('invalid_http', why)];
}

export function errorFormatOf(url: string): ErrorFormat {
  // The cloud's prefix is inside Ollama's.
  if (/^\/api\/v1(\/|\?|$)/.test(url)) return cloudErrorFormat;
  return findApi(url)?.errors ?? accountsErrorFormat;
}

export const jsonHeaders = (requestId: string) => ({
  'content-type': 'application/json; charset=utf-8',
  'x-request-id': requestId,
  'x-content-type-options': 'nosniff',
  'cache-control': 'no-store',
});

/** How long the client may take to read the response and close its side. */
const closeGraceMs = 1000;

/**
 * Writes a whole response to a socket that has no ServerResponse, and closes it. Node has removed
 * its listeners from the socket of a CONNECT: without one, a reset by the client would end the
 * process.
 */
export function answerSocket(socket: Duplex, line: string, body: unknown): void {
  const text = JSON.stringify(body);
  const headers = { ...jsonHeaders(newId()), 'content-length': Buffer.byteLength(text) };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.on('error', () => {});
  socket.end(`HTTP/1.1 ${line}\r\n${lines.join('')}connection: close\r\n\r\n${text}`);
  // A client that does not close its side would keep the connection for ever.
  setTimeout(() => socket.destroy(), closeGraceMs).unref();
}
