// The way most requests come: a key that is known, a whole JSON body of a known length. These are read and
// checked here, without the framework, which would take a good part of a small request's time. Whatever is
// unusual about a request is left to Fastify, which has its own route to the same end.

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { FastifyBaseLogger } from 'fastify';
import type { Authenticator } from '../accounts/authenticate.ts';
import { type Rendered, renderFailure } from '../lib/dialect.ts';
import { parseJson } from '../lib/json-body.ts';
import type { ObserveRequest } from '../lib/observe-request.ts';
import { type RawViolation, toViolation } from '../lib/schema.ts';
import { atTurnEnd } from '../lib/turn.ts';
import { checkTask } from './check.ts';
import type { Task } from './engine.ts';
import { codeOf, inferenceDialect } from './errors.ts';
import type { Recordings } from './recording.ts';
import type { Serve } from './serve.ts';
import { kinds, modelIn, routes, sendFailure, type Visit } from './visit.ts';

/** False when it is not for here; nothing has been done to it then. */
export type ExpressLane = (request: IncomingMessage, response: ServerResponse) => boolean;

export interface ExpressLaneParts {
  authenticator: Authenticator;
  serve: Serve;
  recordings: Recordings;
  maxBodyBytes: number;
  newId(): string;
  /** What a request of each kind must look like. */
  validators: Record<Task['kind'], Validator>;
  isDraining(): boolean;
  /** Told of each request when it is over. */
  observe: ObserveRequest;
  log: FastifyBaseLogger;
}

/** As Fastify makes them of a schema. */
export interface Validator {
  (value: unknown): boolean | Promise<unknown>;
  errors?: unknown;
}

/** As clients write them. */
const jsonTypes: ReadonlySet<string | undefined> = new Set([
  'application/json',
  'application/json; charset=utf-8',
]);

export function createExpressLane(parts: ExpressLaneParts): ExpressLane {
  const { authenticator, serve, recordings, maxBodyBytes, newId, validators, observe, log } = parts;

  const tell = (visit: Visit, error: unknown) =>
    log.error({ err: error, request_id: visit.id }, 'request failed');

  return (request, response) => {
    const kind = kinds.get(request.url);
    if (kind === undefined || request.method !== 'POST' || parts.isDraining()) return false;
    const { headers } = request;
    const bodyBytes = Number(headers['content-length']);
    // Not a number for one that comes in chunks; an empty one has its own refusal.
    if (!(bodyBytes > 0 && bodyBytes <= maxBodyBytes)) return false;
    if (!jsonTypes.has(headers['content-type'])) return false;
    const key = authenticator.recognize(headers.authorization, 'inference');
    if (key === null) return false;
    const visit: Visit = {
      id: newId(),
      caller: { accountId: key.accountId, keyId: key.id, userId: null },
      headers,
      bodyBytes,
      response,
      begunMs: performance.now(),
    };
    receive(request, visit, kind);
    return true;
  };

  /** The request holds on to its listeners for as long as its answer takes, but to no bytes. */
  function receive(request: IncomingMessage, visit: Visit, kind: Task['kind']): void {
    let received: Buffer[] = [];
    request.on('data', (part: Buffer) => received.push(part));
    request.on('end', () => atTurnEnd(begin));

    function begin(): void {
      const task = read(visit, kind, received);
      received = [];
      // Node keeps them twice; what is needed of them is in the visit.
      request.rawHeaders = [];
      answer(visit, kind, task).catch((error) => {
        tell(visit, error);
        visit.response.destroy();
      });
    }
  }

  async function answer(visit: Visit, kind: Task['kind'], task: Task | null): Promise<void> {
    if (task !== null) await serve(visit, task);
    const { id, response, begunMs } = visit;
    const ms = performance.now() - begunMs;
    observe({ method: 'POST', route: routes[kind], status: response.statusCode, id, ms });
  }

  /** Null when it was refused. */
  function read(visit: Visit, kind: Task['kind'], received: readonly Buffer[]): Task | null {
    let body: unknown;
    try {
      const isOne = received.length === 1;
      body = parseJson(isOne ? (received[0] as Buffer) : Buffer.concat(received));
      const validate = validators[kind];
      if (validate(body) === false) {
        const violation = toViolation(validate.errors as RawViolation[]);
        refuse(visit, kind, body, inferenceDialect.violate(violation, 'body', body));
        return null;
      }
      const task = { kind, body } as Task;
      checkTask(task);
      return task;
    } catch (error) {
      const rendered = renderFailure(inferenceDialect, error);
      if (rendered.status >= 500) tell(visit, error);
      refuse(visit, kind, body, rendered);
      return null;
    }
  }

  function refuse(visit: Visit, kind: Task['kind'], body: unknown, rendered: Rendered): void {
    recordings.refused(visit, kind, modelIn(body), codeOf(rendered));
    sendFailure(visit, ['x-request-id', visit.id], rendered);
  }
}
