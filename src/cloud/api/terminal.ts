// A machine's login shell in the browser, over a websocket. Bytes are binary messages both ways; text
// messages are the browser's: its new size, and how much of the output it has shown.

import websocket from '@fastify/websocket';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { type Authenticator, isOurPage, requireRole, sessionOf } from '#accounts/authenticate.ts';
import type { Cloud } from '#cloud/cloud.ts';
import type { Terminal, TerminalSize } from '#cloud/drivers/driver.ts';
import { CloudError } from '#cloud/errors.ts';
import { IdParams } from '#cloud/schema.ts';
import { toId } from '#cloud/wire-id.ts';
import { forbidden, notFound } from '#lib/errors.ts';
import { Type } from '#lib/schema/schema-builder.ts';

/** What is used of a `ws` socket; the package brings no types. */
interface Socket {
  send(data: Buffer): void;
  close(code: number, reason: string): void;
  terminate(): void;
  pause(): void;
  resume(): void;
  on(event: 'message', listener: (data: Buffer, isBinary: boolean) => void): void;
  on(event: 'close', listener: () => void): void;
  on(event: 'error', listener: (error: Error) => void): void;
}

const Size = Type.String({ pattern: '^[1-9][0-9]{0,3}$' });
const SizeQuery = Type.Object({ columns: Size, rows: Size });

const maxMessageBytes = 64 * 1024;
const maxPerSession = 8;
const idleMs = 30 * 60_000;
const recheckMs = 2000;
const closeGraceMs = 1000;
/** Sent but not yet shown: beyond the upper bound the machine's output waits until the lower is reached. */
const unshownBytes = { upper: 512 * 1024, lower: 128 * 1024 };

/** Ours; the reason is a sentence that the page shows. */
const refused = 4000;
const ended = 1000;
const goingAway = 1001;

/** Whether a path leads here. */
export const isTerminal = (url: string) =>
  /^\/dashboard\/api\/instances\/[^/]+\/terminal\/?(\?|$)/.test(url);

export async function terminalRoutes(
  scope: FastifyInstance,
  { authenticator, cloud }: { authenticator: Authenticator; cloud: Cloud },
): Promise<void> {
  const open = new Map<string, number>();
  const sockets = new Set<Socket>();
  await scope.register(websocket, {
    options: { maxPayload: maxMessageBytes },
    preClose(done: () => void) {
      for (const socket of sockets) leave(socket, goingAway, 'The server is shutting down.');
      done();
    },
  });
  authenticator.requireSession(scope);

  const schema = { params: IdParams, querystring: SizeQuery };
  scope.get(
    '/instances/:id/terminal',
    {
      schema,
      websocket: true,
      // A browser opens websockets across sites, cookies and all, and asks nobody: the page has to be ours.
      preHandler: async (request) => {
        requireRole(request, 'owner', 'member');
        if (!isOurPage(request)) throw forbidden('This request came from a page of another site.');
        await cloud.instances.get(sessionOf(request).accountId, idOf(request)).catch(refuseUnknown);
      },
    },
    (socket: Socket, request) => {
      const { sessionId } = sessionOf(request);
      // Errors are followed by a close, which is what counts.
      socket.on('error', () => {});
      const count = open.get(sessionId) ?? 0;
      if (count >= maxPerSession) {
        leave(socket, refused, `At most ${maxPerSession} terminals can be open at once.`);
        return;
      }
      open.set(sessionId, count + 1);
      sockets.add(socket);
      socket.on('close', () => {
        sockets.delete(socket);
        const left = (open.get(sessionId) ?? 1) - 1;
        if (left > 0) open.set(sessionId, left);
        else open.delete(sessionId);
      });
      // What is typed meanwhile waits in the connection.
      socket.pause();
      serve(socket, request).catch((error: unknown) => {
        request.log.error({ err: error, request_id: request.id }, 'a terminal did not open');
        leave(socket, refused, 'The terminal could not be opened; the server’s log says why.');
      });
    },
  );

  async function serve(socket: Socket, request: FastifyRequest): Promise<void> {
    const session = sessionOf(request);
    const { accountId } = session;
    const id = idOf(request);
    let gone = false;
    socket.on('close', () => {
      gone = true;
    });
    const terminal = await cloud.details.openTerminal(session, id, sizeOf(request));
    if (terminal === undefined || gone) {
      terminal?.kill();
      leave(socket, refused, 'This machine does not run, or has no terminals.');
      return;
    }
    const carrying = carry(socket, terminal);
    const unsubscribe = cloud.events.subscribe(accountId, ({ instanceId, status }) => {
      if (instanceId === id && status !== 'active')
        leave(socket, ended, `The machine is ${status}.`);
    });
    const recheck = setInterval(() => {
      if (carrying.silentMs() > idleMs)
        leave(socket, ended, 'Closed after half an hour of silence.');
      authenticator.findSession(request).then(
        (session) => {
          if (session !== undefined && session.role !== 'viewer') return;
          leave(socket, ended, 'You are signed out, or may no longer use machines.');
        },
        () => leave(socket, refused, 'The session could not be checked.'),
      );
    }, recheckMs).unref();
    socket.on('close', () => {
      clearInterval(recheck);
      unsubscribe();
      terminal.kill();
    });
    socket.resume();
  }
}

/** Bytes both ways; whoever can't keep up makes the other side wait. */
function carry(socket: Socket, terminal: Terminal): { silentMs(): number } {
  let typedAt = Date.now();
  let unshown = 0;
  let paused = false;

  terminal.onData((data) => {
    socket.send(data);
    unshown += data.length;
    if (unshown <= unshownBytes.upper || paused) return;
    paused = true;
    terminal.pause();
  });
  terminal.onExit(() => leave(socket, ended, 'The shell has ended.'));
  terminal.onDrain(() => socket.resume());

  function shown(bytes: number) {
    unshown = Math.max(0, unshown - bytes);
    if (!paused || unshown >= unshownBytes.lower) return;
    paused = false;
    terminal.resume();
  }

  socket.on('message', (data, isBinary) => {
    if (isBinary) {
      typedAt = Date.now();
      if (!terminal.write(data)) socket.pause();
      return;
    }
    const message = findMessage(data.toString('utf8'));
    if (message === undefined)
      leave(socket, refused, 'The page sent what the server does not know.');
    else if ('shown' in message) shown(message.shown);
    else terminal.resize(message);
  });
  return { silentMs: () => Date.now() - typedAt };
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

/** A page that does not answer to the close is cut off. */
function leave(socket: Socket, code: number, reason: string): void {
  socket.close(code, reason);
  // A paused socket would not hear the answer.
  socket.resume();
  setTimeout(() => socket.terminate(), closeGraceMs).unref();
}

const idOf = (request: FastifyRequest) => toId((request.params as { id: string }).id);

function sizeOf(request: FastifyRequest): TerminalSize {
  const { columns, rows } = request.query as { columns: string; rows: string };
  return { columns: Number(columns), rows: Number(rows) };
}

function refuseUnknown(error: unknown): never {
  throw error instanceof CloudError ? notFound('This instance') : error;
}
