// The REST API as plain calls: every answer bounded in size and time, long work waited for to its true end,
// and whatever goes wrong told as a DriverError.

import type { Socket } from 'node:net';
import { Readable } from 'node:stream';
import { type Dispatcher, request as send, WebSocket } from 'undici';
import { DriverError } from '#cloud/drivers/driver.ts';
import { type Endpoint, openRoute } from './endpoint.ts';

export interface DaemonClient {
  /** The answer's `metadata`. */
  get<Answer>(path: string, query?: Query): Promise<Answer>;
  /** Undefined for 404. */
  find<Answer>(path: string, query?: Query): Promise<Answer | undefined>;
  /** With the tag that `if-match` compares: 412 when somebody changed it since. */
  tagged<Answer>(path: string): Promise<{ readonly value: Answer; readonly tag: string }>;
  /** Starts work and waits for its end. Also for calls that the daemon answers at once. */
  run(
    method: 'POST' | 'PUT' | 'PATCH' | 'DELETE',
    path: string,
    more?: RequestOptions,
  ): Promise<Operation>;
  /** The raw body, cut at its newest `limit` bytes; undefined for 404. */
  bytes(path: string, limit: number): Promise<Buffer | undefined>;
  wait(operationId: string): Promise<Operation>;
  webSocket(path: string, query?: Query): WebSocket;
  /** Over a connection whose socket can be paused: the browser's interface has no such thing. */
  pausableWebSocket(path: string, query?: Query): { socket: WebSocket; connection: () => Socket };
  /** Where else the same endpoint is, for when it does not answer. */
  alsoAt(urls: readonly string[]): void;
  close(): Promise<void>;
}

export type Query = Readonly<Record<string, string | null | undefined>>;

export interface RequestOptions {
  readonly query?: Query;
  /** JSON, or bytes sent as they are. */
  readonly body?: object | Buffer | Readable;
  readonly headers?: Readonly<Record<string, string>>;
  readonly waitMs?: number;
  /** Answer as soon as the work was begun. */
  readonly begun?: boolean;
}

export interface Operation {
  readonly id: string;
  readonly status_code: number;
  readonly err: string;
  readonly metadata: Readonly<Record<string, unknown>> | null;
  readonly resources?: Readonly<Record<string, readonly string[] | null>> | null;
}

/** With the daemon's own code, for those who must tell a wrong question from a busy server. */
export class DaemonError extends DriverError {
  readonly code: number;

  constructor(code: number, message: string) {
    super(isFinal(message) ? 'impossible' : 'unavailable', message);
    this.name = 'DaemonError';
    this.code = code;
  }
}

const maxAnswerBytes = 64 * 1024 * 1024;
const waitRoundSeconds = 20;
const defaultWaitMs = 10 * 60_000;

export function createDaemonClient(endpoint: Endpoint, project: string): DaemonClient {
  const route = openRoute(endpoint);

  function toUrl(origin: string, path: string, query: Query = {}): string {
    const url = new URL(path, origin);
    for (const [name, value] of Object.entries({ project, ...query })) {
      if (value !== null && value !== undefined) url.searchParams.set(name, value);
    }
    return url.href;
  }

  async function exchange(method: Dispatcher.HttpMethod, path: string, more: RequestOptions = {}) {
    const raw = Buffer.isBuffer(more.body) || more.body instanceof Readable;
    // With any other type the files API takes an empty file.
    const type = raw ? 'application/octet-stream' : 'application/json';
    try {
      const { statusCode, headers, body } = await send(toUrl(route.httpOrigin, path, more.query), {
        method,
        dispatcher: route.agent,
        headers: { 'content-type': type, ...more.headers },
        body: raw ? (more.body as Buffer | Readable) : more.body && JSON.stringify(more.body),
      });
      return { statusCode, tag: `${headers.etag ?? ''}`, bytes: await readBounded(body) };
    } catch (error) {
      if (error instanceof DriverError) throw error;
      throw new DriverError('unavailable', `${endpoint.url}: ${describe(error)}`, error);
    }
  }

  async function call(method: Dispatcher.HttpMethod, path: string, more?: RequestOptions) {
    const { bytes } = await exchange(method, path, more);
    return parseAnswer(bytes, `${method} ${path}`);
  }

  async function wait(operationId: string, waitMs = defaultWaitMs): Promise<Operation> {
    const deadline = performance.now() + waitMs;
    for (;;) {
      // Built from the id: the URL the daemon gives may carry a query, and `/wait` behind it is ignored.
      const query = { timeout: `${waitRoundSeconds}` };
      const { metadata } = await call('GET', `/1.0/operations/${operationId}/wait`, {
        query,
      }).catch((error) => {
        // A restarted daemon has forgotten its operations.
        if (!(error instanceof DaemonError && error.code === 404)) throw error;
        throw new DriverError('unavailable', 'The daemon lost track of the work; trying again.');
      });
      const operation = metadata as Operation;
      // 200 on the outside also when the work failed.
      if (operation.status_code >= 400) throw new DaemonError(operation.status_code, operation.err);
      if (operation.status_code >= 200) return operation;
      if (performance.now() > deadline) {
        throw new DriverError('unavailable', `The daemon did not finish within ${waitMs} ms.`);
      }
    }
  }

  async function find<Answer>(path: string, query?: Query): Promise<Answer | undefined> {
    try {
      return (await call('GET', path, { query })).metadata as Answer;
    } catch (error) {
      if (error instanceof DaemonError && error.code === 404) return undefined;
      throw error;
    }
  }

  return {
    wait,
    find,
    get: async <Answer>(path: string, query?: Query) =>
      (await call('GET', path, { query })).metadata as Answer,

    async tagged<Answer>(path: string) {
      const { bytes, tag } = await exchange('GET', path);
      return { value: parseAnswer(bytes, `GET ${path}`).metadata as Answer, tag };
    },

    async run(method, path, more) {
      const answer = await call(method, path, more);
      const operation = answer.metadata as Operation;
      return answer.type === 'async' && !more?.begun ? wait(operation.id, more?.waitMs) : operation;
    },

    async bytes(path, limit) {
      const { statusCode, bytes } = await exchange('GET', path);
      if (statusCode === 404) return undefined;
      if (statusCode !== 200) throw toError(bytes, `GET ${path}`);
      return bytes.subarray(Math.max(0, bytes.length - limit));
    },

    webSocket: (path, query) =>
      new WebSocket(toUrl(route.webSocketOrigin, path, query), { dispatcher: route.agent }),

    pausableWebSocket(path, query) {
      let connection: Socket | undefined;
      const dispatcher = route.dedicated((socket) => {
        connection = socket;
      });
      const socket = new WebSocket(toUrl(route.webSocketOrigin, path, query), { dispatcher });
      socket.addEventListener('close', () => void dispatcher.destroy());
      return {
        socket,
        connection() {
          if (!connection) throw new DriverError('unavailable', 'It is not connected yet.');
          return connection;
        },
      };
    },

    alsoAt: route.alsoAt,
    close: () => route.agent.destroy(),
  };
}

async function readBounded(body: Dispatcher.ResponseData['body']): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of body as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > maxAnswerBytes) {
      body.destroy();
      throw new DriverError('unavailable', 'The daemon answered with more than it should.');
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

interface Answer {
  readonly type: string;
  readonly error_code?: number;
  readonly error?: string;
  readonly metadata: unknown;
}

function parseAnswer(bytes: Buffer, what: string): Answer {
  let answer: Answer | null = null;
  try {
    answer = JSON.parse(bytes.toString());
  } catch {
    // Told below.
  }
  if (answer === null || typeof answer !== 'object' || answer.type === 'error') {
    throw toError(bytes, what);
  }
  return answer;
}

function toError(bytes: Buffer, what: string): DriverError {
  try {
    const { error_code, error } = JSON.parse(bytes.toString()) as Answer;
    return new DaemonError(error_code ?? 500, error || `${what} was refused.`);
  } catch {
    return new DriverError('unavailable', `${what} was not answered in JSON.`);
  }
}

/** What no second try will better. Everything else may be the daemon's, a member's or a disk's bad moment.
 * By the words: for work that failed, LXD says 400 whatever the reason, and Incus 500. */
function isFinal(message: string): boolean {
  return /\binvalid\b|not supported|unsupported|KVM support|failed to detect requested gpu|NVIDIA container tools/i.test(
    message,
  );
}

function describe(error: unknown): string {
  const { message, code } = error as NodeJS.ErrnoException;
  return message || code || String(error);
}
