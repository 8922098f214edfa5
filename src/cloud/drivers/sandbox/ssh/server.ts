// The ssh server of one machine, in our process: listens on the machine's address, turns away whom its rules
// don't allow, bounds what strangers may hold open, and gives every connection the ciphers that suit its client.

import net from 'node:net';
import ssh2, { type Algorithms } from 'ssh2';
import { DriverError, type InboundRule } from '#cloud/drivers/driver.ts';
import type { RunningMachine } from '#cloud/drivers/sandbox/machine/enter.ts';
import { serveConnection } from './connection.ts';
import { createSourceFilter } from './source-filter.ts';

/** The port that rules name, whichever we got. */
const ruledPort = 22;
const connectionLimit = 64;
const loginTimeoutMs = 30_000;
const greetingTimeoutMs = 2000;
const partingMs = 500;

export interface SshServer {
  readonly port: number;
  /** For who comes from now on. */
  setRules(rules: readonly InboundRule[]): void;
  close(): Promise<void>;
}

/** Runs in OpenSSL and needs no separate checksum: four times as fast as any other cipher here. */
const fast: Algorithms = { cipher: ['aes128-gcm@openssh.com', 'aes256-gcm@openssh.com'] };
const broad: Algorithms = {
  cipher: [...(fast.cipher as []), 'aes128-ctr', 'aes192-ctr', 'aes256-ctr'],
  hmac: ['hmac-sha2-256-etm@openssh.com', 'hmac-sha2-512-etm@openssh.com', 'hmac-sha2-256'],
};
/** The client's preference decides, and these prefer others though they know GCM. */
const knowsFast = /^SSH-2\.0-(OpenSSH_([6-9]|\d\d)|PuTTY_Release_0\.(79|8|9)|libssh2?_)/;

export async function startSshServer(
  machine: RunningMachine,
  ports: readonly number[],
  log: (message: string) => void,
): Promise<SshServer> {
  /** By the peer's address and port; the timer ends a login that takes too long. */
  const visitors = new Map<string, { socket: net.Socket; timer: NodeJS.Timeout }>();
  const servers = [fast, broad].map((algorithms) => {
    const server = new ssh2.Server({
      hostKeys: [machine.record.hostKey],
      ident: 'millrace',
      algorithms: { ...algorithms, compress: ['none'] },
    });
    return server.on('connection', (connection, { ip, port }) => {
      const visitor = visitors.get(`${ip} ${port}`);
      if (!visitor) return connection.end();
      const { socket, timer } = visitor;
      connection.once('ready', () => clearTimeout(timer));
      const from = `${ip} ${port} ${machine.record.ip} ${door.port}`;
      return serveConnection(machine, connection, { from, drop: () => socket.destroy(), log });
    });
  });

  let mayEnter = createSourceFilter(machine.record.spec.firewall, ruledPort);
  const listener = net.createServer({ noDelay: true }, (socket) => {
    if (!mayEnter(socket.remoteAddress)) return void socket.destroy();
    const peer = `${socket.remoteAddress} ${socket.remotePort}`;
    const timer = setTimeout(() => socket.destroy(), loginTimeoutMs);
    visitors.set(peer, { socket, timer });
    socket.on('close', () => {
      clearTimeout(timer);
      visitors.delete(peer);
    });
    socket.on('error', () => {});
    greet(socket, (greeting) => servers[knowsFast.test(greeting) ? 0 : 1]!.injectSocket(socket));
  });
  listener.maxConnections = connectionLimit;
  const door: SshServer = {
    port: await listen(listener, machine.record.ip, ports),
    setRules(rules) {
      mayEnter = createSourceFilter(rules, ruledPort);
    },
    async close() {
      const closed = new Promise<void>((resolve) => listener.close(() => resolve()));
      for (const { socket } of visitors.values()) socket.destroySoon();
      // A client that reads nothing is not waited for.
      const timer = setTimeout(() => {
        for (const { socket } of visitors.values()) socket.destroy();
      }, partingMs);
      await closed;
      clearTimeout(timer);
    },
  };
  listener.on('error', (error) => log(`ssh server of ${machine.record.ip}: ${error.message}`));
  return door;
}

/** Clients speak first, as the protocol allows; one that waits for us is taken as unknown. */
function greet(socket: net.Socket, then: (greeting: string) => void) {
  const timer = setTimeout(() => finish(''), greetingTimeoutMs);
  const finish = (greeting: string) => {
    clearTimeout(timer);
    socket.removeListener('readable', onReadable);
    if (!socket.destroyed) then(greeting);
  };
  const onReadable = () => {
    const chunk: Buffer | null = socket.read();
    if (!chunk) return;
    socket.unshift(chunk);
    finish(chunk.toString('latin1'));
  };
  socket.on('readable', onReadable);
  socket.on('close', () => clearTimeout(timer));
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
