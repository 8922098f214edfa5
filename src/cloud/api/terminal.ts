// The login shell of an instance in the browser, over a websocket. Binary messages carry the bytes in both
// directions; text messages are the browser's: its new size, and how many bytes of output it has displayed.

import type { Server, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import websocket from '@fastify/websocket';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { type Authenticator, isOurPage, requireRole, sessionOf } from '#accounts/authenticate.ts';
import type { Terminal, TerminalSize } from '#cloud/drivers/driver.ts';
import { CloudError } from '#cloud/errors.ts';
import type { InstanceDetails } from '#cloud/instances/instance-details.ts';
import type { InstanceEvents } from '#cloud/instances/instance-events.ts';
import type { Instances } from '#cloud/instances/instances.ts';
import { IdParams } from '#cloud/schema.ts';
import { toId } from '#cloud/wire.ts';
import { forbidden, notFound } from '#lib/errors.ts';
import { KeyCounts } from '#lib/memory/key-counts.ts';
import { Type } from '#lib/schema/schema-builder.ts';

/** The part of a `ws` socket that is used here; the package has no types. */
interface Socket {
  /** Bytes that wait to be sent. */
  readonly bufferedAmount: number;
  /** Calls back once the bytes have left this process, or the socket has failed. */
  send(data: Buffer, sent: () => void): void;
  pong(data: Buffer): void;
  close(code: number, reason: string): void;
  terminate(): void;
  pause(): void;
  resume(): void;
  on(event: 'message', listener: (data: Buffer, isBinary: boolean) => void): void;
  on(event: 'ping', listener: (data: Buffer) => void): void;
  on(event: 'close', listener: () => void): void;
  on(event: 'error', listener: (error: Error) => void): void;
}

const Size = Type.String({ pattern: '^[1-9][0-9]{0,3}$' });
const SizeQuery = Type.Object({ columns: Size, rows: Size });

const maxMessageBytes = 64 * 1024;
const maxPerPerson = 16;
const maxIdleMs = 30 * 60_000;
const recheckMs = 2000;
const closeGraceMs = 1000;
/**
 * Bytes of output that are not yet displayed. Above the upper bound the terminal is paused, until the lower bound is
 * reached.
 */
const undisplayedBytes = { upper: 512 * 1024, lower: 128 * 1024 };

/** A close code of our own. With any code, the reason is a sentence that the page shows. */
const refused = 4000;
const ended = 1000;
const goingAway = 1001;

export interface TerminalParts {
  authenticator: Authenticator;
  cloud: {
    details: Pick<InstanceDetails, 'openTerminal'>;
    events: Pick<InstanceEvents, 'subscribe'>;
    instances: Pick<Instances, 'get'>;
  };
}

/** Whether the URL is that of a terminal. */
export const isTerminal = (url: string) =>
  /^\/dashboard\/api\/instances\/[^/]+\/terminal\/?(\?|$)/.test(url);

export async function terminalRoutes(scope: FastifyInstance, parts: TerminalParts): Promise<void> {
  const open = new KeyCounts();
  const sockets = new Set<Socket>();
  await scope.register(websocket, {
    // One message a turn of the event loop: a flood of small ones would hold up every other request.
    options: { maxPayload: maxMessageBytes, autoPong: false, allowSynchronousEvents: false },
    preClose(done: () => void) {
      for (const socket of sockets) close(socket, goingAway, 'The server is shutting down.');
      done();
    },
  });
  closeRefused(scope.server);
  parts.authenticator.requireSession(scope);

  const schema = { params: IdParams, querystring: SizeQuery };
  const preHandler = (request: FastifyRequest) => authorize(parts, request);
  scope.get(
    '/instances/:id/terminal',
    { schema, websocket: true, preHandler },
    (socket: Socket, request) => {
      const { userId } = sessionOf(request);
      // An error is followed by a close, which is handled.
      socket.on('error', () => {});
      // Pongs to a client that does not read them would fill the memory.
      socket.on('ping', (data) => socket.bufferedAmount === 0 && socket.pong(data));
      if (open.get(userId) >= maxPerPerson) {
        close(socket, refused, `At most ${maxPerPerson} terminals can be open at once.`);
        return;
      }
      open.add(userId);
      sockets.add(socket);
      socket.on('close', () => {
        sockets.delete(socket);
        open.remove(userId);
      });
      // Input that arrives before the shell is open stays in the connection.
      socket.pause();
      serve(parts, socket, request).catch((error: unknown) => {
        request.log.error({ err: error, request_id: request.id }, 'cannot open a terminal');
        close(socket, refused, 'The terminal could not be opened. The server log says why.');
      });
    },
  );
}

/** The plugin closes only sockets that its own route refuses. Others, which have no timeouts, would stay open. */
function closeRefused(server: Server): void {
  server.on('upgrade', (_request, socket: Duplex & { _httpMessage?: ServerResponse | null }) => {
    socket._httpMessage?.once('finish', () => socket.destroy());
  });
}

async function authorize({ cloud }: TerminalParts, request: FastifyRequest): Promise<void> {
  requireRole(request, 'owner', 'member');
  // Browsers open websockets across sites and send cookies with them, so the page must be ours.
  if (!isOurPage(request)) throw forbidden('This request came from a page of another site.');
  const { accountId } = sessionOf(request);
  await cloud.instances.get(accountId, idOf(request)).catch((error: unknown) => {
    throw error instanceof CloudError ? notFound('This instance') : error;
  });
}

async function serve(
  { authenticator, cloud }: TerminalParts,
  socket: Socket,
  request: FastifyRequest,
): Promise<void> {
  const session = sessionOf(request);
  const id = idOf(request);
  let gone = false;
  socket.on('close', () => {
    gone = true;
  });
  const terminal = await cloud.details.openTerminal(session, id, sizeOf(request));
  if (terminal === undefined || gone) {
    terminal?.kill();
    close(socket, refused, 'This instance is not running, or has no terminals.');
    return;
  }
  const { idleMs } = connect(socket, terminal);
  const unsubscribe = cloud.events.subscribe(session.accountId, ({ instanceId, status }) => {
    if (instanceId !== id || status === 'active') return;
    close(socket, ended, `The instance is ${status}.`);
  });
  const recheck = setInterval(() => {
    if (idleMs() > maxIdleMs) close(socket, ended, 'Closed after half an hour without input.');
    authenticator.findSession(request).then(
      (current) => {
        if (current !== undefined && current.role !== 'viewer') return;
        close(socket, ended, 'You are signed out, or may no longer use instances.');
      },
      () => close(socket, refused, 'The session could not be checked.'),
    );
  }, recheckMs).unref();
  socket.on('close', () => {
    clearInterval(recheck);
    unsubscribe();
    terminal.kill();
  });
  socket.resume();
}

/** Copies bytes in both directions with backpressure. */
function connect(socket: Socket, terminal: Terminal): { idleMs(): number } {
  let typedAt = Date.now();
  let undisplayed = 0;
  let paused = false;

  // A client may claim to have displayed what still waits to be sent to it.
  const behindBytes = () => Math.max(undisplayed, socket.bufferedAmount);
  terminal.onData((data) => {
    undisplayed += data.length;
    socket.send(data, resumeIfRead);
    if (paused || behindBytes() <= undisplayedBytes.upper) return;
    paused = true;
    terminal.pause();
  });
  terminal.onExit(() => close(socket, ended, 'The shell has ended.'));
  terminal.onDrain(() => socket.resume());

  function resumeIfRead() {
    if (!paused || behindBytes() >= undisplayedBytes.lower) return;
    paused = false;
    terminal.resume();
  }

  function markDisplayed(bytes: number) {
    undisplayed = Math.max(0, undisplayed - bytes);
    resumeIfRead();
  }

  socket.on('message', (data, isBinary) => {
    if (isBinary) {
      typedAt = Date.now();
      if (!terminal.write(data)) socket.pause();
      return;
    }
    const message = findMessage(data.toString('utf8'));
    if (message === undefined) close(socket, refused, 'The page sent an unknown message.');
    else if ('shown' in message) markDisplayed(message.shown);
    else terminal.resize(message);
  });
  return { idleMs: () => Date.now() - typedAt };
}

type Message = TerminalSize | { shown: number };

function findMessage(text: string): Message | undefined {
  let value: Partial<TerminalSize & { shown: number }> | null;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  const { columns = 0, rows = 0, shown = 0 } = value ?? {};
  if (isCount(shown)) return { shown };
  return isCount(columns) && isCount(rows) ? { columns, rows } : undefined;
}

const isCount = (value: unknown) => Number.isSafeInteger(value) && (value as number) > 0;

/** Closes the socket, and cuts the connection if the page does not confirm the close. */
function close(socket: Socket, code: number, reason: string): void {
  socket.close(code, reason);
  // A paused socket would not receive the confirmation.
  socket.resume();
  setTimeout(() => socket.terminate(), closeGraceMs).unref();
}

const idOf = (request: FastifyRequest) => toId((request.params as { id: string }).id);

function sizeOf(request: FastifyRequest): TerminalSize {
  const { columns, rows } = request.query as { columns: string; rows: string };
  return { columns: Number(columns), rows: Number(rows) };
}
