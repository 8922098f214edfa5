// The connections of an HTTP server, taken before the server sees them. Requests that somebody wants and that
// are as simple as nearly all are answered here, without the objects Node makes for each. With the first other
// request a connection goes to the server for good, as if nobody had looked.

import type { RequestListener, Server } from 'node:http';
import type { Server as TlsServer } from 'node:https';
import type { Socket } from 'node:net';
import { NodeReply, type Reply } from '../reply.ts';
import { type Member, noSeat, Roster } from '../roster.ts';
import { headBytes, type RequestHead, RequestHeads } from './request-head.ts';
import { SocketReply } from './socket-reply.ts';

/** Null when it is not wanted; the server gets it then. */
export type Admit = (head: RequestHead, reply: Reply) => Admitted | Promise<Admitted>;
export type Admitted = TakeBody | null;
/** Is called once: with null when the body did not come. */
export type TakeBody = (body: readonly Buffer[] | null) => void;

const cr = 13;
const lf = 10;
const lookMs = 1000;
/** Of what comes before an answer is whole. */
const mostEarlyBytes = 65_536;
/** For who sent half a request to read what we think of it. */
const lingerMs = 5000;

interface Front {
  readonly server: Server | TlsServer;
  readonly connections: Roster<Connection>;
  readonly admit: Admit;
  /** What an answer says of its connection. */
  readonly keepAlive: string;
  /** The server's own way to take a connection. */
  give(socket: Socket): void;
}

export function takeConnections(server: Server | TlsServer, admit: Admit): void {
  const event = 'setSecureContext' in server ? 'secureConnection' : 'connection';
  const [own] = server.listeners(event) as ((socket: Socket) => void)[];
  if (own === undefined) throw new Error('the server takes no connections');
  const connections = new Roster<Connection>();
  const front: Front = {
    server,
    connections,
    admit: guard(admit),
    keepAlive: `Connection: keep-alive\r\nKeep-Alive: timeout=${Math.floor(server.keepAliveTimeout / 1000)}\r\n`,
    give: (socket) => own.call(server, socket),
  };
  server.off(event, own);
  server.on(event, (socket: Socket) => connections.add(new Connection(socket, front)));
  const timer = setInterval(() => {
    for (const connection of connections.list()) connection.look();
  }, lookMs).unref();
  server.once('close', () => clearInterval(timer));

  const { closeIdleConnections, closeAllConnections } = server;
  server.closeIdleConnections = () => {
    closeIdleConnections.call(server);
    for (const connection of connections.list()) if (connection.isIdle) connection.close();
  };
  server.closeAllConnections = () => {
    closeAllConnections.call(server);
    for (const connection of connections.list()) connection.close();
  };
}

/** An error in an event of a socket would end the process. */
const guard =
  (admit: Admit): Admit =>
  (head, reply) => {
    try {
      const admitted = admit(head, reply);
      return admitted instanceof Promise ? admitted.catch(() => null) : admitted;
    } catch {
      return null;
    }
  };

/** Those whose next request was not wanted, so that nobody is asked about it again. */
const refused = new WeakSet<Socket>();

/** The same for the server's own requests: connections that went to it bring such as are wanted, too. */
export function takeRequests(unguarded: Admit, route: RequestListener): RequestListener {
  const admit = guard(unguarded);
  return (request, response) => {
    const { method, url: path = '', headers } = request;
    const bodyBytes = Number(headers['content-length']);

    function enter(take: Admitted): void {
      if (take === null) {
        route(request, response);
        return;
      }
      let body: Buffer[] = [];
      request.on('data', (part: Buffer) => body.push(part));
      request.on('close', () => request.complete || take(null));
      request.on('end', () => {
        take(body);
        // The request lives on for as long as its answer takes; Node keeps its headers twice.
        body = [];
        request.rawHeaders = [];
      });
    }

    // Not a number for one that comes in chunks.
    const isSimple = method === 'POST' && bodyBytes >= 0 && !refused.delete(request.socket);
    const take = isSimple ? admit({ path, headers, bodyBytes }, new NodeReply(response)) : null;
    if (take instanceof Promise) take.then(enter);
    else enter(take);
  };
}

class Connection implements Member {
  seat = noSeat;
  readonly #socket: Socket;
  readonly #front: Front;
  readonly #heads = new RequestHeads();
  readonly #onEnd = () => this.#answered();
  #quietLooks = 0;
  #path = '';
  #take: TakeBody | null = null;
  #parts: Buffer[] = [];
  #missing = 0;
  #reply: SocketReply | null = null;
  /** What came before the answer was whole. */
  #early: Buffer[] = [];
  #earlyBytes = 0;

  constructor(socket: Socket, front: Front) {
    this.#socket = socket;
    this.#front = front;
    socket.on('data', this.#receive);
    socket.on('drain', this.#drained);
    socket.on('end', this.#ended);
    socket.on('error', ignore);
    socket.on('close', this.#closed);
  }

  /** Nothing is asked, and all that was answered has left, or never will. */
  get isIdle(): boolean {
    const { writableLength, writableEnded } = this.#socket;
    return this.#reply === null && (writableLength === 0 || writableEnded);
  }

  close(): void {
    this.#socket.destroy();
  }

  /** Once a second. */
  look(): void {
    this.#quietLooks++;
    const { keepAliveTimeout, requestTimeout } = this.#front.server;
    // Whoever takes the rest of an answer slowly is not quiet.
    if (this.#reply === null && !this.isIdle) this.#quietLooks = 0;
    else if (this.isIdle && this.#quietLooks * lookMs > keepAliveTimeout + lookMs) this.close();
    else if (this.#take !== null && this.#quietLooks * lookMs > requestTimeout)
      this.#giveUp('ERR_HTTP_REQUEST_TIMEOUT');
  }

  readonly #receive = (packet: Buffer): void => {
    if (this.#take !== null) this.#gather(packet);
    else if (this.#reply !== null) this.#keep(packet);
    // Who asks on without reading is held back by the server.
    else if (this.#socket.writableNeedDrain) this.#handOver(packet);
    else if (!isBlank(packet)) this.#open(packet);
  };

  #open(packet: Buffer): void {
    const bytes = headBytes(packet);
    const head = bytes === 0 ? null : this.#heads.read(packet, bytes);
    if (head === null) {
      this.#handOver(packet);
      return;
    }
    const reply = new SocketReply(this.#socket, this.#front.keepAlive, this.#onEnd);
    const take = this.#front.admit(head, reply);
    this.#quietLooks = 0;
    this.#reply = reply;
    this.#path = head.path;
    this.#missing = head.bodyBytes;
    if (take instanceof Promise) this.#wait(packet, bytes, take);
    else this.#enter(packet, bytes, take);
  }

  async #wait(packet: Buffer, bytes: number, coming: Promise<Admitted>): Promise<void> {
    this.#socket.pause();
    const take = await coming;
    if (this.#socket.destroyed) return;
    this.#socket.resume();
    this.#enter(packet, bytes, take);
  }

  #enter(packet: Buffer, bytes: number, take: Admitted): void {
    if (take === null) {
      refused.add(this.#socket);
      this.#handOver(packet);
      return;
    }
    this.#take = take;
    if (packet.length > bytes || this.#missing === 0) this.#gather(packet.subarray(bytes));
  }

  #gather(packet: Buffer): void {
    const part = packet.length > this.#missing ? packet.subarray(0, this.#missing) : packet;
    this.#parts.push(part);
    this.#missing -= part.length;
    if (part.length < packet.length) this.#keep(packet.subarray(part.length));
    if (this.#missing > 0) return;
    const take = this.#take as TakeBody;
    const parts = this.#parts;
    this.#take = null;
    this.#parts = [];
    take(parts);
  }

  /** Has its turn later. What is read meanwhile tells also whether the client is there. */
  #keep(packet: Buffer): void {
    this.#early.push(packet);
    this.#earlyBytes += packet.length;
    if (this.#earlyBytes >= mostEarlyBytes) this.#socket.pause();
  }

  #answered(): void {
    this.#reply = null;
    this.#quietLooks = 0;
    if (this.#earlyBytes === 0 || this.#socket.destroyed) return;
    const early = Buffer.concat(this.#early);
    this.#early = [];
    this.#earlyBytes = 0;
    // Whether or not it was: what is handed over is read only by a flow that begins.
    this.#socket.pause().resume();
    if (!isBlank(early)) this.#handOver(early);
  }

  #handOver(packet: Buffer): void {
    const socket = this.#socket;
    this.#leave();
    socket.unshift(packet);
    this.#front.give(socket);
  }

  #leave(): void {
    this.#front.connections.delete(this);
    const socket = this.#socket;
    socket.off('data', this.#receive).off('drain', this.#drained).off('end', this.#ended);
    socket.off('error', ignore).off('close', this.#closed);
  }

  /** The rest of a request does not come. */
  #giveUp(code: 'ERR_HTTP_REQUEST_TIMEOUT' | 'HPE_INVALID_EOF_STATE'): void {
    const socket = this.#socket;
    this.#leave();
    socket.on('error', ignore);
    const error = Object.assign(new Error('the request is not whole'), { code, path: this.#path });
    this.#abandon();
    if (!this.#front.server.emit('clientError', error, socket)) socket.destroy();
    // However much of it still comes.
    else setTimeout(() => socket.destroy(), lingerMs).unref();
  }

  #abandon(): void {
    const take = this.#take;
    this.#take = null;
    take?.(null);
  }

  readonly #drained = (): void => this.#reply?.drained();

  /** Who says no more does not listen any more either, as Node sees it. */
  readonly #ended = (): void => {
    if (this.#reply === null) this.#socket.end();
    else if (this.#take !== null) this.#giveUp('HPE_INVALID_EOF_STATE');
    else this.close();
  };

  readonly #closed = (): void => {
    this.#front.connections.delete(this);
    this.#reply?.closed();
    this.#abandon();
  };
}

/** Empty lines, which some send after a body. */
function isBlank(packet: Buffer): boolean {
  for (let at = 0; at < packet.length; at++)
    if (packet[at] !== cr && packet[at] !== lf) return false;
  return true;
}

function ignore(): void {
  // What went wrong is seen by its end.
}
