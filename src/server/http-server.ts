// Creates the HTTP servers of the app. Fastify asks for one per address that it listens at: `localhost` has two.

import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { Duplex } from 'node:stream';
import { accountsErrorFormat } from '#accounts/errors.ts';
import { isTerminal } from '#cloud/api/terminal.ts';
import { limitConnections } from '#http/connection-limit.ts';
import { answerHalfClosed } from '#http/half-closed.ts';
import { createServer } from '#http/node-http.ts';
import { closeStuckConnections } from '#http/stuck-connections.ts';
import { methodNotAllowed, Refusal } from '#lib/errors.ts';
import { newId } from '#lib/ids.ts';
import { answerSocket, createBadHttpHandler, errorFormatOf, jsonHeaders } from './bad-http.ts';

const options = {
  requestTimeout: 120_000,
  keepAliveTimeout: 75_000,
  // http/request-head.ts requires the Host header. Node's own refusal has an empty body.
  requireHostHeader: false,
  // Other paths ignore an upgrade: a socket that has left HTTP has no timeouts.
  shouldUpgradeCallback: ({ url = '' }: IncomingMessage) => isTerminal(url),
};

export function createHttpServer(
  https: { cert: Buffer; key: Buffer } | null,
  maxPerClient: number | null,
  handle: RequestListener,
): Server {
  const server = https
    ? createTlsServer({ ...https, ...options }, handle)
    : createServer(options, handle);
  closeStuckConnections(server);
  limitConnections(server, maxPerClient);
  answerHalfClosed(server);
  server.on('clientError', createBadHttpHandler());
  server.on('checkExpectation', refuseExpectation);
  server.on('connect', refuseConnect);
  return server;
}

function refuseExpectation(request: IncomingMessage, response: ServerResponse): void {
  const refusal = new Refusal(
    'expectation_failed',
    'The only supported Expect header is "100-continue".',
  );
  const { status, body } = errorFormatOf(request.url ?? '/').renderRefusal(refusal);
  const text = JSON.stringify(body);
  const length = { 'content-length': Buffer.byteLength(text) };
  response.writeHead(status, { ...jsonHeaders(newId()), ...length }).end(text);
}

function refuseConnect(request: IncomingMessage, socket: Duplex): void {
  const refusal = methodNotAllowed('CONNECT', request.url ?? '/', ['GET', 'POST']);
  answerSocket(socket, '405 Method Not Allowed', accountsErrorFormat.renderRefusal(refusal).body);
}
