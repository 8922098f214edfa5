// Connections to one HTTP/1.1 server, used again where it allows. It does much less than undici's pool and
// takes less time for it: no pipelining, no proxies; a request is a string, and its answer is taken as it comes.

import { connect, isIP, type OnReadOpts, type Socket, type TcpNetConnectOpts } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { type Handler, Link, type OutgoingRequest } from './connection.ts';
import { Http1Error } from './errors.ts';
import { ResponseHeads } from './response-head.ts';

export interface PoolOptions {
  /** Its scheme, host and port are used. */
  readonly url: URL;
  /** Sent with every request. Names are in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** Null for as many as there are requests. */
  readonly connections: number | null;
  readonly connectMs: number;
  readonly maxHeadBytes: number;
}

export interface Pool {
  send(request: OutgoingRequest, handler: Handler): void;
  /** One that still waits for a connection is not sent any more. */
  forget(handler: Handler): void;
  /** What runs fails. */
  destroy(): void;
}

interface Waiting {
  readonly request: OutgoingRequest;
  readonly handler: Handler;
}

const sweepMs = 1000;
/** As much as Node reads at once. */
const packetBytes = 64 * 1024;

export function createPool(options: PoolOptions): Pool {
  const { url, connections, connectMs, maxHeadBytes } = options;
  const most = connections ?? Number.POSITIVE_INFINITY;
  const headText = toHeadText(url, options.headers);
  const links = new Set<Link>();
  /** The one that was used last is the next: the others may then be closed. */
  const idle: Link[] = [];
  const waiting: Waiting[] = [];
  const packet = Buffer.allocUnsafeSlow(packetBytes);
  const heads = new ResponseHeads();
  let session: Buffer | undefined;
  let isDestroyed = false;

  const sweep = setInterval(() => {
    const now = performance.now();
    for (const link of idle.filter(({ idleUntilMs }) => idleUntilMs <= now)) link.close();
  }, sweepMs).unref();

  function open(): void {
    links.add(
      new Link({
        connect: toSocket,
        packet,
        headText,
        heads,
        connectMs,
        maxHeadBytes,
        free,
        closed,
      }),
    );
  }

  function toSocket(onread: OnReadOpts): Socket {
    const host = url.hostname.replace(/^\[|\]$/g, '');
    const isSecure = url.protocol === 'https:';
    const where: TcpNetConnectOpts = {
      host,
      port: Number(url.port) || (isSecure ? 443 : 80),
      noDelay: true,
      keepAlive: true,
      keepAliveInitialDelay: 60_000,
      onread,
    };
    if (!isSecure) return connect(where);
    const socket = connectTls({
      ...where,
      ...(isIP(host) === 0 && { servername: host }),
      ...(session && { session }),
      ALPNProtocols: ['http/1.1'],
    });
    return socket.on('session', (fresh: Buffer) => {
      session = fresh;
    });
  }

  /** It is connected, or its answer is over. */
  function free(link: Link): void {
    const next = waiting.shift();
    if (next === undefined) idle.push(link);
    else link.send(next.request, next.handler);
  }

  function closed(link: Link, error: Error | null): void {
    links.delete(link);
    const at = idle.indexOf(link);
    if (at !== -1) idle.splice(at, 1);
    // It never was one: somebody who waits for it is told, the others may be luckier.
    if (error !== null) waiting.shift()?.handler.failed(error, false);
    if (isDestroyed || waiting.length === 0 || links.size >= most) return;
    const coming = [...links].filter(({ isConnecting }) => isConnecting).length;
    if (coming < waiting.length) open();
  }

  function takeIdle(): Link | undefined {
    const now = performance.now();
    for (let link = idle.pop(); link !== undefined; link = idle.pop()) {
      if (link.idleUntilMs > now) return link;
      link.close();
    }
    return undefined;
  }

  return {
    send(request, handler) {
      if (isDestroyed) {
        handler.failed(new Http1Error('closed', 'no longer used'), false);
        return;
      }
      const link = takeIdle();
      if (link !== undefined) {
        link.send(request, handler);
        return;
      }
      waiting.push({ request, handler });
      if (links.size < most) open();
    },
    forget(handler) {
      const at = waiting.findIndex((one) => one.handler === handler);
      if (at !== -1) waiting.splice(at, 1);
    },
    destroy() {
      isDestroyed = true;
      clearInterval(sweep);
      const error = new Http1Error('closed', 'no longer used');
      for (const { handler } of waiting.splice(0)) handler.failed(error, false);
      for (const link of links) link.close(error);
    },
  };
}

/** What all requests say. How a request is framed, and what becomes of its connection, is said by us alone. */
function toHeadText(url: URL, headers: Readonly<Record<string, string>>): string {
  const all = Object.entries({ host: url.host, ...headers });
  const lines = all
    .filter(([name]) => !ours.has(name))
    .map(([name, value]) => `${name}: ${value}\r\n`);
  return ` HTTP/1.1\r\n${lines.join('')}`;
}

const ours: ReadonlySet<string> = new Set([
  'connection',
  'content-length',
  'expect',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);
