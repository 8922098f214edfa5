// One ssh connection: authenticates the client, then serves its sessions and forwardings. Only public keys
// are accepted, and the only user is `ubuntu`.

import type { Duplex } from 'node:stream';
import type { Connection, ParsedKey, PublicKeyAuthContext } from 'ssh2';
import type { RunningMachine } from '#cloud/drivers/sandbox/machine/enter.ts';
import { isAlive } from '#cloud/drivers/sandbox/machine/process-identity.ts';
import { findKey, parseAuthorizedKeys, readTenantKeys } from './authorized-keys.ts';
import { boundChannels } from './bounded-channels.ts';
import { createForwarder } from './forwarding.ts';
import { serveForwardings } from './forwarding-requests.ts';
import { serveSession } from './session.ts';

const maxSessions = 32;
const maxAttempts = 10;

export interface ConnectionContext {
  /** Value of SSH_CONNECTION: "client-address client-port server-address server-port". */
  readonly from: string;
  readonly socket: Duplex;
  /** Whether a client may log in with a key that the machine accepts. Must be asked right before it is let in. */
  admits(key: Buffer): boolean;
  readonly log: (message: string) => void;
}

export function serveConnection(
  machine: RunningMachine,
  connection: Connection,
  { from, socket, admits, log }: ConnectionContext,
) {
  const drop = () => void socket.destroy();
  let attempts = 0;
  let sessions = 0;
  let tenantKeys: Promise<ParsedKey[]> | null = null;
  // Once a connection: each reading starts a process, for a client that has not logged in yet.
  const readKeys = () => {
    tenantKeys ??= readTenantKeys(machine);
    return tenantKeys;
  };
  connection.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'ECONNRESET') log(`ssh to ${machine.record.ip}: ${error.message}`);
  });
  connection.on('authentication', (context) => {
    attempts += 1;
    if (attempts > maxAttempts) return drop();
    if (context.method !== 'publickey' || context.username !== 'ubuntu') {
      return context.reject(['publickey']);
    }
    return void mayLogIn(machine, context, readKeys)
      .catch(() => false)
      .then((allowed) =>
        allowed && admits(context.key.data) ? context.accept() : context.reject(['publickey']),
      )
      .catch(drop);
  });
  connection.on('ready', () => {
    const channels = boundChannels(connection, socket, drop);
    serveForwardings(connection, channels, createForwarder(machine));
    connection.on('session', (accept, reject) => {
      if (sessions >= maxSessions) return reject();
      sessions += 1;
      return serveSession(machine, accept(), {
        from,
        bound(channel) {
          // Not when the session closes: ssh2 keeps a session that closes without a channel.
          channel.on('close', () => {
            sessions -= 1;
          });
          return channels.bound(channel);
        },
      });
    });
  });
}

async function mayLogIn(
  machine: RunningMachine,
  context: PublicKeyAuthContext,
  readKeys: () => Promise<ParsedKey[]>,
): Promise<boolean> {
  if (!(await isAlive(machine.process.init))) return false;
  const given = parseAuthorizedKeys(machine.record.spec.authorizedKeys.join('\n'));
  const key = findKey(given, context.key.data) ?? findKey(await readKeys(), context.key.data);
  if (!key) return false;
  // Without a signature the client only asks whether the key is acceptable.
  if (!context.signature || !context.blob) return true;
  // An RSA signature without a named hash uses SHA-1, which is refused.
  if (key.type === 'ssh-rsa' && !context.hashAlgo) return false;
  return key.verify(context.blob, context.signature, context.hashAlgo) === true;
}
