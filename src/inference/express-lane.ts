// The way most requests come: a key that is known, a whole JSON body of a known length. These are read and
// checked here, without the framework, which would take a good part of a small request's time. Whatever is
// unusual about a request is left to Fastify, which has its own route to the same end.

import type { FastifyBaseLogger } from 'fastify';
import type { FoundApiKey } from '../accounts/api-keys.ts';
import type { Authenticator } from '../accounts/authenticate.ts';
import { type Rendered, renderFailure } from '../lib/dialect.ts';
import type { Admit } from '../lib/http1/front.ts';
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

/** Nobody is told so; it is for logs and metrics, where others call it that, too. */
const clientLeft = 499;

/** As clients write them. */
const jsonTypes: ReadonlySet<string | undefined> = new Set([
  'application/json',
  'application/json; charset=utf-8',
]);

export function createExpressLane(parts: ExpressLaneParts): Admit {
  const { authenticator, serve, recordings, maxBodyBytes, newId, validators, observe, log } = parts;

  const tell = (visit: Visit, error: unknown) =>
    log.error({ err: error, request_id: visit.id }, 'request failed');

  return ({ path, headers, bodyBytes }, reply) => {
    const kind = kinds.get(path);
    if (kind === undefined || parts.isDraining()) return null;
    // An empty one has its own refusal.
    if (bodyBytes === 0 || bodyBytes > maxBodyBytes) return null;
    if (!jsonTypes.has(headers['content-type'])) return null;
    const begunMs = performance.now();
    const enter = (key: FoundApiKey | null) => {
      if (key === null) return null;
      const caller = { accountId: key.accountId, keyId: key.id, userId: null };
      const visit: Visit = { id: newId(), caller, begunMs, headers, bodyBytes, reply };
      return (body: readonly Buffer[] | null) =>
        body === null ? abandon(visit, kind) : atTurnEnd(() => begin(visit, kind, body));
    };
    const key = authenticator.recognize(headers.authorization, 'inference');
    return key instanceof Promise ? key.then(enter) : enter(key);
  };

  function begin(visit: Visit, kind: Task['kind'], body: readonly Buffer[]): void {
    const task = read(visit, kind, body);
    answer(visit, kind, task).catch((error) => {
      tell(visit, error);
      visit.reply.cut();
    });
  }

  /** The client left, or fell silent, in the middle of its request. */
  function abandon(visit: Visit, kind: Task['kind']): void {
    recordings.refused(visit, kind, '', 'incomplete_request');
    tellEnd(visit, kind, clientLeft);
  }

  async function answer(visit: Visit, kind: Task['kind'], task: Task | null): Promise<void> {
    if (task !== null) await serve(visit, task);
    const { reply } = visit;
    tellEnd(visit, kind, reply.isBegun ? reply.status : clientLeft);
  }

  function tellEnd({ id, begunMs }: Visit, kind: Task['kind'], status: number): void {
    const ms = performance.now() - begunMs;
    observe({ method: 'POST', route: routes[kind], status, id, ms });
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
