// One ssh connection: authenticates the client, then serves its sessions and forwardings. Only public keys
// are accepted, and the only user is `ubuntu`.

import type { Connection, PublicKeyAuthContext } from 'ssh2';
import type { RunningMachine } from '#cloud/drivers/sandbox/machine/enter.ts';
import { isAlive } from '#cloud/drivers/sandbox/machine/process-identity.ts';
import { findKey, parseAuthorizedKeys, readTenantKeys } from './authorized-keys.ts';
import { createForwarder } from './forwarding.ts';
import { serveForwardings } from './forwarding-requests.ts';
import { serveSession } from './session.ts';

const maxSessions = 32;
const maxAttempts = 10;

export interface ConnectionContext {
  /** Value of SSH_CONNECTION: "client-address client-port server-address server-port". */
  readonly from: string;
  readonly drop: () => void;
  readonly log: (message: string) => void;
}

export function serveConnection(
  machine: RunningMachine,
  connection: Connection,
  { from, drop, log }: ConnectionContext,
) {
  let attempts = 0;
  let sessions = 0;
  connection.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'ECONNRESET') log(`ssh to ${machine.record.ip}: ${error.message}`);
  });
  connection.on('authentication', (context) => {
    attempts += 1;
    if (attempts > maxAttempts) return drop();
    if (context.method !== 'publickey' || context.username !== 'ubuntu') {
      return context.reject(['publickey']);
    }
    return void mayLogIn(machine, context)
      .catch(() => false)
      .then((allowed) => (allowed ? context.accept() : context.reject(['publickey'])))
      .catch(drop);
  });
  connection.on('ready', () => {
    serveForwardings(connection, createForwarder(machine));
    connection.on('session', (accept, reject) => {
      if (sessions >= maxSessions) return reject();
      sessions += 1;
      const session = accept();
      session.on('close', () => {
        sessions -= 1;
      });
      return serveSession(machine, session, from);
    });
  });
}

async function mayLogIn(machine: RunningMachine, context: PublicKeyAuthContext): Promise<boolean> {
  if (!(await isAlive(machine.process.init))) return false;
  const given = parseAuthorizedKeys(machine.record.spec.authorizedKeys.join('\n'));
  const key =
    findKey(given, context.key.data) ?? findKey(await readTenantKeys(machine), context.key.data);
  if (!key) return false;
  // Without a signature the client only asks whether the key is acceptable.
  if (!context.signature || !context.blob) return true;
  // An RSA signature without a named hash uses SHA-1, which is refused.
  if (key.type === 'ssh-rsa' && !context.hashAlgo) return false;
  return key.verify(context.blob, context.signature, context.hashAlgo) === true;
}
