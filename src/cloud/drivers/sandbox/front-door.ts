// The ssh server of one machine, in our process: checks keys, bounds what a client may hold open, and
// hands sessions and forwardings on. Passwords are never asked for; the only user is `ubuntu`.

import type { AddressInfo } from 'node:net';
import ssh2, { type Connection, type PublicKeyAuthContext } from 'ssh2';
import { DriverError } from '../driver.ts';
import { findKey, parseAuthorizedKeys, readTenantKeys } from './authorized-keys.ts';
import type { RunningMachine } from './enter.ts';
import { createForwarder } from './forwarding.ts';
import { serveForwardings } from './forwarding-requests.ts';
import { isAlive } from './process-identity.ts';
import { serveSession } from './session.ts';

const connectionLimit = 64;
const sessionLimit = 32;
const attemptLimit = 10;
const loginTimeoutMs = 30_000;

export interface FrontDoor {
  readonly port: number;
  close(): Promise<void>;
}

export async function openFrontDoor(
  machine: RunningMachine,
  ports: readonly number[],
  log: (message: string) => void,
): Promise<FrontDoor> {
  const connections = new Set<Connection>();
  const server = new ssh2.Server(
    {
      hostKeys: [machine.record.hostKey],
      ident: 'millrace',
      // AES-GCM runs in OpenSSL; ChaCha20-Poly1305, which clients prefer, would run in JavaScript.
      algorithms: {
        cipher: ['aes128-gcm@openssh.com', 'aes256-gcm@openssh.com', 'aes128-ctr', 'aes256-ctr'],
        hmac: ['hmac-sha2-256-etm@openssh.com', 'hmac-sha2-512-etm@openssh.com', 'hmac-sha2-256'],
        compress: ['none'],
      },
    },
    (connection, client) => {
      connections.add(connection);
      connection.on('close', () => connections.delete(connection));
      const from = `${client.ip} ${client.port} ${machine.record.ip} ${door.port}`;
      serveConnection(machine, connection, from, log);
    },
  );
  server.maxConnections = connectionLimit;
  const door = {
    port: await listen(server, machine.record.ip, ports),
    close: async () => {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      for (const connection of connections) connection.end();
      // A client that does not answer is not waited for.
      const timer = setTimeout(() => {
        for (const connection of connections) destroy(connection);
      }, 500);
      await closed;
      clearTimeout(timer);
    },
  };
  server.on('error', (error: Error) =>
    log(`ssh server of ${machine.directory.id}: ${error.message}`),
  );
  return door;
}

function serveConnection(
  machine: RunningMachine,
  connection: Connection,
  from: string,
  log: (message: string) => void,
) {
  const timer = setTimeout(() => destroy(connection), loginTimeoutMs);
  let attempts = 0;
  let sessions = 0;
  connection.on('close', () => clearTimeout(timer));
  connection.on('error', (error: Error) => log(`ssh to ${machine.record.ip}: ${error.message}`));
  connection.on('authentication', async (context) => {
    attempts += 1;
    if (attempts > attemptLimit) return destroy(connection);
    if (context.method !== 'publickey' || context.username !== 'ubuntu') {
      return context.reject(['publickey']);
    }
    const allowed = await mayLogIn(machine, context).catch(() => false);
    if (allowed) context.accept();
    else context.reject(['publickey']);
  });
  connection.on('ready', () => {
    clearTimeout(timer);
    serveForwardings(connection, createForwarder(machine));
    connection.on('session', (accept, reject) => {
      if (sessions >= sessionLimit) return reject();
      sessions += 1;
      const session = accept();
      session.on('close', () => {
        sessions -= 1;
      });
      serveSession({ machine, connection: from, log }, session);
    });
  });
}

async function mayLogIn(machine: RunningMachine, context: PublicKeyAuthContext): Promise<boolean> {
  if (!(await isAlive(machine.process.init))) return false;
  const given = parseAuthorizedKeys(machine.record.spec.authorizedKeys.join('\n'));
  const key =
    findKey(given, context.key.data) ?? findKey(await readTenantKeys(machine), context.key.data);
  if (!key) return false;
  // Without a signature the client only asks whether this key would do.
  if (!context.signature || !context.blob) return true;
  // An RSA key without a named hash signs with SHA-1.
  if (key.type === 'ssh-rsa' && !context.hashAlgo) return false;
  return key.verify(context.blob, context.signature, context.hashAlgo) === true;
}

async function listen(server: ssh2.Server, ip: string, ports: readonly number[]): Promise<number> {
  for (const port of ports) {
    const failure = await new Promise<NodeJS.ErrnoException | null>((resolve) => {
      server.once('error', resolve);
      server.listen(port, ip, () => {
        server.removeListener('error', resolve);
        resolve(null);
      });
    });
    if (!failure) return (server.address() as AddressInfo).port;
    if (failure.code !== 'EACCES' && failure.code !== 'EADDRINUSE') throw failure;
  }
  throw new DriverError('unavailable', `No ssh port of ${ip} is free (tried ${ports.join(', ')}).`);
}

function destroy(connection: Connection) {
  // ssh2 has no public way to drop a connection whose handshake never ended.
  (connection as unknown as { _sock?: { destroy(): void } })._sock?.destroy();
}
