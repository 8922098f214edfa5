// AGENT: runs inside a machine as `ubuntu`, alone, with nothing but Node. Connects and listens in the
// machine's own network on behalf of `ssh -L`, `-D` and `-R`, over one HTTP/2 connection on descriptor 3,
// which gives every forwarding its own flow control. Ends when that connection does.

import http2, { type ServerHttp2Stream } from 'node:http2';
import net from 'node:net';

const listenerLimit = 64;
const waitingLimit = 256;
const connectTimeoutMs = 20_000;

const waiting = new Map<string, net.Socket>();
let listeners = 0;
let nextWaiting = 0;

// Not half-open: an open `/listen` would keep the session, and us, after the server's end has gone.
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

/** The answer's body names each arriving connection on a line; each is then fetched by `take`. */
function listen(stream: ServerHttp2Stream, host: string, port: number) {
  if (listeners >= listenerLimit) return stream.respond({ ':status': 503 }, { endStream: true });
  listeners += 1;
  const server = net.createServer({ allowHalfOpen: true, pauseOnConnect: true }, (socket) => {
    if (waiting.size >= waitingLimit) return socket.destroy();
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
