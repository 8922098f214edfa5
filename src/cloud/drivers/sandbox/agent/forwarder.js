// AGENT: runs inside a machine as `ubuntu`, alone, with nothing but Node. It connects and listens in the
// machine's network for `ssh -L`, `-D` and `-R`. The server reaches it over one HTTP/2 connection on descriptor
// 3, which gives each forwarding its own flow control. It exits when that connection ends. It is plain JavaScript,
// because stripping types would double the CPU time of its start, which an engine that loads on one vCPU lacks.

import http2 from 'node:http2';
import net from 'node:net';
import { Duplex } from 'node:stream';

/** @typedef {http2.ServerHttp2Stream} Stream */

const maxListeners = 64;
const maxWaiting = 256;
const connectTimeoutMs = 20_000;

/**
 * Accepted connections that the server has not fetched yet, by name.
 * @type {Map<string, net.Socket>}
 */
const waiting = new Map();
let listeners = 0;
let nextWaiting = 0;

// Not half-open: an open `/listen` would keep the session and this process alive after the server is gone.
const channel = new net.Socket({ fd: 3 });
const session = http2.performServerHandshake(relay(channel), {
  settings: { initialWindowSize: 1024 * 1024, maxConcurrentStreams: 1024 },
});
session.setLocalWindowSize(16 * 1024 * 1024);
channel.on('close', () => process.exit(0));
session.on('close', () => process.exit(0));
session.on('error', () => process.exit(1));
session.on('stream', (stream, headers) => {
  stream.on('error', () => {});
  const target = new URL(String(headers[':path']), 'http://machine');
  const host = target.searchParams.get('host') ?? '';
  const port = Number(target.searchParams.get('port'));
  if (target.pathname === '/connect') connect(stream, host, port);
  else if (target.pathname === '/listen') listen(stream, host, port);
  else if (target.pathname === '/take') take(stream, target.searchParams.get('name') ?? '');
  else stream.respond({ ':status': 404 }, { endStream: true });
});

/**
 * Before version 26, Node stops reading a session while one of its writes waits. When both ends
 * had more to write than a socket takes, neither went on. Here each write ends at once: the
 * server's window bounds what then waits in `socket`.
 * @type {(socket: net.Socket) => Duplex}
 */
function relay(socket) {
  const duplex = new Duplex({
    read: () => void socket.resume(),
    writev: (chunks, done) => {
      socket.cork();
      for (const { chunk } of chunks) socket.write(chunk);
      socket.uncork();
      done();
    },
    final: (done) => void socket.end(done),
  });
  socket.on('data', (bytes) => {
    if (!duplex.push(bytes)) socket.pause();
  });
  socket.once('end', () => duplex.push(null));
  socket.on('error', (error) => duplex.destroy(error));
  return duplex;
}

/** @type {(stream: Stream, host: string, port: number) => void} */
function connect(stream, host, port) {
  const socket = net.connect({ host, port, allowHalfOpen: true });
  const refuse = () => {
    if (!stream.headersSent && !stream.destroyed) {
      stream.respond({ ':status': 502 }, { endStream: true });
    }
    socket.destroy();
  };
  socket.setTimeout(connectTimeoutMs, refuse);
  socket.once('error', refuse);
  stream.once('close', () => socket.destroy());
  socket.once('connect', () => {
    socket.setTimeout(0);
    join(stream, socket);
  });
}

/**
 * The response body has one JSON line per accepted connection, which the server then fetches by `/take`.
 * @type {(stream: Stream, host: string, port: number) => void}
 */
function listen(stream, host, port) {
  if (listeners >= maxListeners) return stream.respond({ ':status': 503 }, { endStream: true });
  listeners += 1;
  const server = net.createServer({ allowHalfOpen: true, pauseOnConnect: true }, (socket) => {
    if (waiting.size >= maxWaiting) return socket.destroy();
    nextWaiting += 1;
    const name = String(nextWaiting);
    waiting.set(name, socket);
    socket.on('error', () => {});
    socket.once('close', () => waiting.delete(name));
    const { remoteAddress, remotePort } = socket;
    stream.write(`${JSON.stringify({ name, address: remoteAddress, port: remotePort })}\n`);
  });
  server.once('error', () => {
    if (!stream.headersSent && !stream.destroyed) {
      stream.respond({ ':status': 409 }, { endStream: true });
    }
  });
  stream.once('close', () => {
    listeners -= 1;
    server.close();
  });
  server.listen(port, host, () => {
    const address = /** @type {net.AddressInfo} */ (server.address());
    stream.respond({ ':status': 200, 'x-port': String(address.port) });
  });
  return undefined;
}

/** @type {(stream: Stream, name: string) => void} */
function take(stream, name) {
  const socket = waiting.get(name);
  waiting.delete(name);
  if (!socket) return stream.respond({ ':status': 404 }, { endStream: true });
  socket.resume();
  return join(stream, socket);
}

/** @type {(stream: Stream, socket: net.Socket) => void} */
function join(stream, socket) {
  if (stream.destroyed) {
    socket.destroy();
    return;
  }
  socket.setNoDelay(true);
  stream.respond({ ':status': 200 });
  socket.on('error', () => stream.close());
  stream.on('close', () => socket.destroy());
  socket.pipe(stream);
  stream.pipe(socket);
}
