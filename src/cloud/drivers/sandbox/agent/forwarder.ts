// AGENT: runs inside a machine as `ubuntu`, alone, with nothing but Node. It connects and listens in the
// machine's network for `ssh -L`, `-D` and `-R`. The server reaches it over one HTTP/2 connection on descriptor
// 3, which gives each forwarding its own flow control. It exits when that connection ends.

import http2, { type ServerHttp2Stream } from 'node:http2';
import net from 'node:net';

const maxListeners = 64;
const maxWaiting = 256;
const connectTimeoutMs = 20_000;

/** Accepted connections that the server has not fetched yet, by name. */
const waiting = new Map<string, net.Socket>();
let listeners = 0;
let nextWaiting = 0;

// Not half-open: an open `/listen` would keep the session and this process alive after the server is gone.
const channel = new net.Socket({ fd: 3 });
const session = http2.performServerHandshake(channel, {
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

function connect(stream: ServerHttp2Stream, host: string, port: number) {
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

/** The response body has one JSON line per accepted connection, which the server then fetches by `/take`. */
function listen(stream: ServerHttp2Stream, host: string, port: number) {
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
    const address = server.address() as net.AddressInfo;
    stream.respond({ ':status': 200, 'x-port': String(address.port) });
  });
  return undefined;
}

function take(stream: ServerHttp2Stream, name: string) {
  const socket = waiting.get(name);
  waiting.delete(name);
  if (!socket) return stream.respond({ ':status': 404 }, { endStream: true });
  socket.resume();
  return join(stream, socket);
}

function join(stream: ServerHttp2Stream, socket: net.Socket) {
  if (stream.destroyed) return socket.destroy();
  socket.setNoDelay(true);
  stream.respond({ ':status': 200 });
  socket.on('error', () => stream.close());
  stream.on('close', () => socket.destroy());
  socket.pipe(stream);
  stream.pipe(socket);
  return undefined;
}
