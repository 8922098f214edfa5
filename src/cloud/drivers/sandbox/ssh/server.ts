// The ssh server of one machine, in this process. It listens on the machine's address, filters clients by the
// machine's rules, bounds unauthenticated connections, and picks the ciphers that suit each client.

import net from 'node:net';
import type { Duplex } from 'node:stream';
import ssh2, { type Algorithms } from 'ssh2';
import { DriverError, type InboundRule } from '#cloud/drivers/driver.ts';
import type { SandboxContext } from '#cloud/drivers/sandbox/machine/context.ts';
import type { RunningMachine } from '#cloud/drivers/sandbox/machine/enter.ts';
import { serveConnection } from './connection.ts';
import { Logins, loginBounds } from './logins.ts';
import { PacedSocket } from './paced-socket.ts';
import { createSourceFilter } from './source-filter.ts';

/** The port that rules name, whichever one the server listens on. */
const ruledPort = 22;
const maxSessions = 64;
const loginTimeoutMs = 30_000;
/** Name of this server in its identification line. */
const software = 'millrace';
/** Grace period at `close` for clients to read what was sent. */
const closeTimeoutMs = 500;

export interface SshServer {
  readonly port: number;
  /** Applies to new connections only. */
  setRules(rules: readonly InboundRule[]): void;
  /** Refuses these keys in place of those before, and ends the connections that they opened. */
  refuse(keys: readonly string[]): void;
  close(): Promise<void>;
}

/** GCM runs in OpenSSL and needs no separate checksum: four times as fast as any other cipher here
 * (`scp 256 MB` in bench/machines.ts). */
const fast: Algorithms = { cipher: ['aes128-gcm@openssh.com', 'aes256-gcm@openssh.com'] };
/** A handshake with a finite field of 8,192 bits would take 110 ms of this process, before the client is known. */
const kex: Algorithms['kex'] = [
  'curve25519-sha256',
  'curve25519-sha256@libssh.org',
  'ecdh-sha2-nistp256',
  'ecdh-sha2-nistp384',
  'ecdh-sha2-nistp521',
];
const broad: Algorithms = {
  cipher: [...(fast.cipher as []), 'aes128-ctr', 'aes192-ctr', 'aes256-ctr'],
  hmac: ['hmac-sha2-256-etm@openssh.com', 'hmac-sha2-512-etm@openssh.com', 'hmac-sha2-256'],
};
/** Clients that support GCM but prefer other ciphers. The client's preference decides, so they are offered
 * nothing else. */
const supportsFast = /^SSH-2\.0-(OpenSSH_([6-9]|\d\d)|PuTTY_Release_0\.(79|8|9)|libssh2?_)/;

interface Peer {
  readonly socket: net.Socket;
  /** What ssh2 reads and writes; null until the client has sent its identification line. */
  paced: PacedSocket | null;
  /** The public key that the client has logged in with, as base64; null before. */
  key: string | null;
  /** Call once the client has logged in or left. */
  endLogin(): void;
}

export async function startSshServer(
  machine: RunningMachine,
  rules: readonly InboundRule[],
  { sshPorts, turns, log }: Pick<SandboxContext, 'sshPorts' | 'turns' | 'log'>,
): Promise<SshServer> {
  /** The open connections, by the peer's address and port. */
  const peers = new Map<string, Peer>();
  let refused = toBlobs(machine.record.spec.refusedKeys);
  const protocolServers = [fast, broad].map((algorithms) => {
    const server = new ssh2.Server({
      hostKeys: [machine.record.hostKey],
      ident: software,
      algorithms: { ...algorithms, kex, compress: ['none'] },
    });
    return server.on('connection', (connection, { ip, port }) => {
      const peer = peers.get(`${ip} ${port}`);
      if (!peer?.paced) return connection.end();
      connection.once('ready', () => peer.endLogin());
      const from = `${ip} ${port} ${machine.record.ip} ${listeningPort}`;
      const admits = (key: Buffer) => {
        peer.key = key.toString('base64');
        return !refused.has(peer.key);
      };
      return serveConnection(machine, connection, { from, socket: peer.paced, admits, log });
    });
  });

  let isAllowed = createSourceFilter(rules, ruledPort);
  const logins = new Logins();
  const listener = net.createServer({ noDelay: true }, (socket) => {
    const { remoteAddress = '' } = socket;
    const leaveLogins = isAllowed(remoteAddress) ? logins.enter(remoteAddress) : null;
    if (leaveLogins === null) return void socket.destroy();
    const peer = trackPeer(peers, socket, leaveLogins);
    // Sent at once, because some clients, e.g. SkyPilot, wait for it before they send theirs.
    socket.write(`SSH-2.0-${software}\r\n`);
    readGreeting(socket, (greeting) => {
      peer.paced = new PacedSocket(socket, turns, machine.directory.id);
      ignoreNextWrite(peer.paced);
      const protocolServer = protocolServers[supportsFast.test(greeting) ? 0 : 1]!;
      protocolServer.injectSocket(peer.paced as Duplex as net.Socket);
    });
  });
  listener.maxConnections = maxSessions + loginBounds.max;
  const listeningPort = await listen(listener, machine.record.ip, sshPorts);
  listener.on('error', (error) => log(`ssh server of ${machine.record.ip}: ${error.message}`));
  return {
    port: listeningPort,
    setRules(rules) {
      isAllowed = createSourceFilter(rules, ruledPort);
    },
    refuse(keys) {
      refused = toBlobs(keys);
      for (const { key, socket } of peers.values()) {
        if (key !== null && refused.has(key)) socket.destroy();
      }
    },
    close: () => close(listener, peers),
  };
}

const toBlobs = (keys: readonly string[] = []) =>
  new Set(keys.map((key) => key.split(' ')[1] ?? ''));

function trackPeer(peers: Map<string, Peer>, socket: net.Socket, leaveLogins: () => void): Peer {
  const key = `${socket.remoteAddress} ${socket.remotePort}`;
  const timer = setTimeout(() => socket.destroy(), loginTimeoutMs);
  const endLogin = () => {
    clearTimeout(timer);
    leaveLogins();
  };
  const peer = { socket, endLogin, paced: null, key: null };
  peers.set(key, peer);
  socket.on('close', () => {
    endLogin();
    peers.delete(key);
  });
  socket.on('error', () => {});
  return peer;
}

async function close(listener: net.Server, peers: ReadonlyMap<string, Peer>) {
  const closed = new Promise<void>((resolve) => listener.close(() => resolve()));
  for (const { socket } of peers.values()) socket.destroySoon();
  const timer = setTimeout(() => {
    for (const { socket } of peers.values()) socket.destroy();
  }, closeTimeoutMs);
  await closed;
  clearTimeout(timer);
}

/** Passes on the client's identification line, which chooses the ciphers; the bytes can still be read. */
function readGreeting(socket: net.Socket, then: (greeting: string) => void) {
  const onReadable = () => {
    const chunk: Buffer | null = socket.read();
    if (!chunk) return;
    socket.removeListener('readable', onReadable);
    socket.unshift(chunk);
    then(chunk.toString('latin1'));
  };
  socket.on('readable', onReadable);
}

/** Drops the identification line that ssh2 sends first: the client has it already. */
function ignoreNextWrite(socket: PacedSocket) {
  const { write } = socket;
  socket.write = () => {
    socket.write = write;
    return true;
  };
}

async function listen(server: net.Server, ip: string, ports: readonly number[]): Promise<number> {
  for (const port of ports) {
    const failure = await new Promise<NodeJS.ErrnoException | null>((resolve) => {
      server.once('error', resolve);
      server.listen(port, ip, () => {
        server.removeListener('error', resolve);
        resolve(null);
      });
    });
    if (!failure) return (server.address() as net.AddressInfo).port;
    if (failure.code !== 'EACCES' && failure.code !== 'EADDRINUSE') throw failure;
  }
  throw new DriverError('unavailable', `No ssh port of ${ip} is free (tried ${ports.join(', ')}).`);
}
