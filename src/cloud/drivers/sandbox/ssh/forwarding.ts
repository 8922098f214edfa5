// Implements `ssh -L`, `-D` and `-R`. An agent inside the machine connects and listens, so that `localhost` is
// the machine and never this host. The tenant controls the agent, so its output is bounded and validated like
// any client's.

import type { ChildProcess } from 'node:child_process';
import http2, { type ClientHttp2Session, type ClientHttp2Stream } from 'node:http2';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { nodeInside } from '#cloud/drivers/sandbox/agent-program.ts';
import { type RunningMachine, spawnInside } from '#cloud/drivers/sandbox/machine/enter.ts';

export interface IncomingConnection {
  readonly address: string;
  readonly port: number;
  /** Fetches the connection, which waits inside the machine until then. */
  take(): Promise<Duplex>;
}

export interface RemoteListener {
  readonly port: number;
  close(): void;
}

export interface Forwarder {
  connect(host: string, port: number): Promise<Duplex>;
  listen(
    host: string,
    port: number,
    onConnection: (incoming: IncomingConnection) => void,
  ): Promise<RemoteListener>;
  close(): void;
}

const responseTimeoutMs = 30_000;
const maxLineLength = 512;

/** The agent starts at the first use and ends with `close` or with this process. */
export function createForwarder(machine: RunningMachine): Forwarder {
  let current: { session: ClientHttp2Session; child: ChildProcess } | undefined;

  function open(): ClientHttp2Session {
    if (current && !current.session.destroyed && !current.session.closed) return current.session;
    const argv = nodeInside(machine.host.mode, 'forwarder');
    const stdio = ['ignore', 'ignore', 'ignore', 'pipe'] as const;
    const child = spawnInside(machine, { argv }, { stdio: [...stdio] });
    const channel = child.stdio[3] as Socket | undefined;
    // E.g. because this process has no file descriptors left.
    if (channel === undefined) {
      child.on('error', () => {});
      throw new Error('no process can be started inside the machine');
    }
    const session = http2.connect('http://machine', {
      createConnection: () => channel,
      settings: { initialWindowSize: 1024 * 1024, enablePush: false },
    });
    session.on('connect', () => session.setLocalWindowSize(16 * 1024 * 1024));
    channel.on('error', () => {});
    session.on('error', () => channel.destroy());
    child.on('error', () => session.destroy());
    child.on('exit', () => session.destroy());
    current = { session, child };
    return session;
  }

  return {
    async connect(host, port) {
      const { stream } = await request(open(), '/connect', { host, port: String(port) });
      return stream;
    },

    async listen(host, port, onConnection) {
      const session = open();
      const { stream, headers } = await request(session, '/listen', { host, port: String(port) });
      readLines(stream, (line) => {
        const incoming = parseIncoming(line);
        if (!incoming) return stream.close();
        const { name, ...from } = incoming;
        const take = async () => (await request(session, '/take', { name })).stream;
        return onConnection({ ...from, take });
      });
      const bound = Number(headers['x-port']);
      return { port: bound > 0 && bound < 65_536 ? bound : port, close: () => stream.close() };
    },

    close() {
      current?.session.destroy();
      current = undefined;
    },
  };
}

async function request(session: ClientHttp2Session, path: string, query: Record<string, string>) {
  const stream: ClientHttp2Stream = session.request(
    { ':method': 'POST', ':path': `${path}?${new URLSearchParams(query)}` },
    { endStream: false },
  );
  const headers = await new Promise<Record<string, unknown>>((resolve, reject) => {
    const timer = setTimeout(() => stream.close(), responseTimeoutMs);
    stream.once('response', resolve);
    stream.on('error', reject);
    stream.once('close', () => {
      clearTimeout(timer);
      reject(new Error('the agent ended'));
    });
    stream.once('response', () => clearTimeout(timer));
  });
  if (headers[':status'] !== 200) {
    stream.close();
    throw new Error(`refused inside the machine (${headers[':status']})`);
  }
  return { stream, headers };
}

function readLines(stream: ClientHttp2Stream, onLine: (line: string) => void) {
  let pending = '';
  stream.setEncoding('utf8');
  stream.on('data', (chunk: string) => {
    const lines = (pending + chunk).split('\n');
    pending = lines.pop() ?? '';
    if (pending.length > maxLineLength) stream.close();
    else lines.forEach(onLine);
  });
}

function parseIncoming(line: string): { name: string; address: string; port: number } | undefined {
  try {
    const { name, address, port } = JSON.parse(line) as Record<string, unknown>;
    if (typeof name !== 'string' || typeof address !== 'string') return undefined;
    if (!Number.isInteger(port)) return undefined;
    return { name, address, port: port as number };
  } catch {
    return undefined;
  }
}
