// One request from its checked body to the last byte of its response: limits, plan, backend, envelope, accounting.
// Whole responses and streams part ways here and nowhere else.

import type { FastifyBaseLogger } from 'fastify';
import type { RequestLimiter } from '#accounts/limits/request-limiter.ts';
import { type Cancellation, ClientDisconnect } from '#http/client-disconnect.ts';
import { type Rendered, renderFailure } from '#http/error-format.ts';
import { type HeaderList, mergeHeaders } from '#http/header-list.ts';
import {
  createEventStreams,
  type EventStream,
  type EventStreams,
  eventStreamHeaders,
} from '#http/sse.ts';
import {
  type Call,
  type EngineChunk,
  type EngineResponse,
  type Task,
  type WireEvents,
  WrittenResponse,
} from '#inference/engine.ts';
import {
  codeOf,
  type InferenceError,
  inferenceErrorFormat,
  internalError,
  modelNotFound,
  toInferenceError,
} from '#inference/errors.ts';
import { toFunctionChoices, toFunctionResponse } from '#inference/legacy-functions.ts';
import type { Catalog, CatalogEntry } from '#inference/models/catalog.ts';
import {
  elapsedMs,
  type InferenceRequest,
  sendError,
  sendResponse,
  sendWritten,
  toSharer,
} from '#inference/request.ts';
import { type ChunkWriter, createChunkWriter, newEnvelope, toResponse } from '#inference/wire.ts';
import type { Clock } from '#lib/clock.ts';
import { type AttemptLog, newAttemptLog, respond } from './attempts.ts';
import { estimateReservation } from './estimate-reservation.ts';
import { type Plan, type PlanParts, planRequest } from './plan.ts';
import type { RequestAccount, RequestAccounting } from './request-accounting.ts';
import { openStream, type StreamParts } from './resumable-stream.ts';
import { createTranscripts, parseEvents, toWireEvents } from './transcript.ts';

export interface ServeOptions extends PlanParts, Omit<StreamParts, 'openTranscript'> {
  readonly limits: RequestLimiter;
  readonly accounting: RequestAccounting;
  readonly clock: Clock;
  readonly log: FastifyBaseLogger;
}

/** Sends a response in every case, and so never throws. */
export type Serve = (request: InferenceRequest, task: Task) => Promise<void>;

export function createServe(options: ServeOptions): Serve {
  const eventStreams = createEventStreams();
  const context = { ...options, eventStreams, openTranscript: createTranscripts() };
  return (request, task) => serve(context, request, task);
}

interface ServeContext extends ServeOptions, StreamParts {
  readonly eventStreams: EventStreams;
}

/** A request that is within its limits. */
interface AdmittedRequest {
  readonly request: InferenceRequest;
  readonly task: Task;
  /** The model that was requested. */
  readonly asked: CatalogEntry;
  /** Headers of the response, extended on the way. */
  readonly headers: HeaderList;
  readonly attempts: AttemptLog;
  readonly account: RequestAccount;
  readonly client: Cancellation;
  /** Members of a stream's events besides its choices, sent with its usage. */
  readonly rest: Record<string, unknown>;
}

async function serve(context: ServeContext, request: InferenceRequest, task: Task): Promise<void> {
  const { catalog, limits, accounting, log } = context;
  const headers: HeaderList = ['x-request-id', request.id, ...request.fixedHeaders];
  let isAdmitted = false;
  try {
    const asked = catalog.find(task.body.model);
    if (asked === undefined) throw modelNotFound(task.body.model);
    const amount = estimateReservation(task, request.bodyBytes, candidatesOf(catalog, asked));
    const reservation = await limits.reserve(request.caller, amount);
    if (reservation.headers !== null) headers.push(...reservation.headers);
    const attempts = newAttemptLog();
    const account = accounting.open(request, task, asked, { reservation, attempts });
    isAdmitted = true;
    const client = new ClientDisconnect(request.response);
    const admitted = { request, task, asked, headers, attempts, account, client, rest: {} };
    await serveAdmitted(context, admitted);
  } catch (error) {
    const rendered = respondWithError(log, request, headers, error);
    if (!isAdmitted) accounting.refused(request, task.kind, task.body.model, codeOf(rendered));
  }
}

function respondWithError(
  log: FastifyBaseLogger,
  request: InferenceRequest,
  headers: HeaderList,
  error: unknown,
): Rendered {
  const rendered = renderFailure(inferenceErrorFormat, error);
  if (rendered.status >= 500 && rendered.status !== 503) {
    log.error({ err: error, request_id: request.id }, 'request failed');
  }
  fail(request, headers, rendered);
  return rendered;
}

/** The requested model and the fallbacks that may serve the request in its place. */
function candidatesOf(catalog: Catalog, asked: CatalogEntry): CatalogEntry[] {
  const all: CatalogEntry[] = [];
  let next: CatalogEntry | undefined = asked;
  while (next !== undefined && !all.includes(next)) {
    all.push(next);
    next = next.contextFallback === null ? undefined : catalog.find(next.contextFallback.to);
  }
  return all;
}

async function serveAdmitted(context: ServeContext, admitted: AdmittedRequest): Promise<void> {
  const { request, task, asked, headers, attempts, account, client } = admitted;
  let served = asked;
  try {
    const { bodyBytes } = request;
    const plan = await planRequest(context, asked, { task, bodyBytes, signal: client });
    served = plan.served;
    account.setPlan(plan);
    const call = toCall(context, admitted, served);
    if (task.body.stream === true) await serveStream(context, admitted, plan, call);
    else await serveWhole(context, admitted, plan, call);
  } catch (error) {
    const told = toInferenceError(error, served.id);
    account.markFailed((told ?? internalError()).code);
    if (client.aborted) return;
    announce(headers, attempts, account);
    // Sent before tokens are counted: the client of a failed request need not wait for the count.
    respondWithError(context.log, request, headers, told ?? error);
  } finally {
    await account.completeCounts();
    account.close(client.aborted);
  }
}

function toCall({ clock }: ServeContext, admitted: AdmittedRequest, served: CatalogEntry): Call {
  const { request, task, account, client, rest } = admitted;
  const showsUsage = task.body.stream_options?.include_usage === true;
  return {
    envelope: newEnvelope(task.kind, request.id, served.id, clock.now()),
    signal: client,
    caller: toSharer(request.caller),
    priority: task.body.priority ?? 0,
    contextWindow: served.contextWindow,
    headers: account.traceHeaders,
    onUsage: (soFar) => account.setUsage(soFar),
    onWork: (isAtWork) => account.setAtWork(isAtWork),
    onRest: showsUsage ? (members) => Object.assign(rest, members) : undefined,
  };
}

async function serveWhole(
  context: ServeContext,
  { request, task, headers, attempts, account, client }: AdmittedRequest,
  plan: Plan,
  call: Call,
): Promise<void> {
  const whole = await respond(context, plan, call, attempts);
  account.setUsage(whole.usage);
  announce(headers, attempts, account);
  await account.completeCounts();
  whole.usage = account.usage() ?? whole.usage;
  if (client.aborted) return;
  if (hasFunctions(task)) {
    const parsed = whole instanceof WrittenResponse ? parseWritten(whole) : whole;
    sendResponse(request, 200, headers, toResponse(call.envelope, toFunctionResponse(parsed)));
  } else if (whole instanceof WrittenResponse) sendWritten(request, headers, whole);
  else sendResponse(request, 200, headers, toResponse(call.envelope, whole));
}

async function serveStream(
  context: ServeContext,
  admitted: AdmittedRequest,
  plan: Plan,
  call: Call,
): Promise<void> {
  const { request, task, headers, attempts, account, client } = admitted;
  const stream = await openStream(context, plan, call, attempts);
  announce(headers, attempts, account);
  headers.push('openai-processing-ms', Math.round(elapsedMs(request)));
  mergeHeaders(headers, eventStreamHeaders);
  const events = context.eventStreams.open(request.response, headers, client);
  const writer = new StreamWriter(events, admitted, call);
  const toEvents = hasFunctions(task) ? toFunctionEvents : (item: WireEvents) => item;
  try {
    await stream.deliver((item) =>
      typeof item === 'string' ? events.pass(toEvents(item)) : writer.sendChoices(item),
    );
    await writer.sendUsage();
  } catch (error) {
    // The headers were sent, so the failure can only be reported inside the stream.
    const told = toInferenceError(error, plan.served.id) ?? internalError();
    account.markFailed(told.code);
    if (!client.aborted) {
      context.log.error({ err: error, request_id: request.id }, 'stream failed');
      await events.send(toErrorEvent(told, task));
    }
  }
  events.pass('data: [DONE]\n\n');
  events.end();
}

const hasFunctions = (task: Task) => task.kind === 'chat' && task.usesFunctions === true;

/** A large response that must be changed is parsed after all. */
function parseWritten({ before, usage, after }: WrittenResponse): EngineResponse {
  const text = Buffer.concat([before, Buffer.from(JSON.stringify(usage)), after]).toString();
  return JSON.parse(text) as EngineResponse;
}

const toFunctionEvents = (events: WireEvents): WireEvents =>
  parseEvents(events)
    .map((event) => toWireEvents({ ...event, choices: toFunctionChoices(event.choices ?? []) }))
    .join('');

/** Writes the events of a stream that its engine has not written itself. */
class StreamWriter {
  readonly #events: EventStream;
  readonly #admitted: AdmittedRequest;
  readonly #call: Call;
  /** Null until it is needed: most streams arrive in wire format. */
  #write: ChunkWriter | null = null;

  constructor(events: EventStream, admitted: AdmittedRequest, call: Call) {
    this.#events = events;
    this.#admitted = admitted;
    this.#call = call;
  }

  sendChoices({ choices, usage }: EngineChunk): Promise<void> | undefined {
    if (choices.length === 0) return undefined;
    const isLegacy = hasFunctions(this.#admitted.task);
    return this.#send({ choices: isLegacy ? toFunctionChoices(choices) : choices, usage });
  }

  /** Sends the usage event, if the request asks for one. */
  async sendUsage(): Promise<void> {
    const { task, account, rest } = this.#admitted;
    if (task.body.stream_options?.include_usage !== true) return;
    await account.completeCounts();
    await this.#send({ choices: [], usage: account.usage(), rest });
  }

  #send(chunk: EngineChunk): Promise<void> | undefined {
    const showsUsage = this.#admitted.task.body.stream_options?.include_usage === true;
    this.#write ??= createChunkWriter(this.#call.envelope, showsUsage);
    return this.#events.send(this.#write(chunk));
  }
}

/** Adds the headers that name the backend and the time spent in Millrace until now. */
function announce(headers: HeaderList, attempts: AttemptLog, account: RequestAccount): void {
  if (attempts.backend !== null) headers.push('x-served-by', attempts.backend.name);
  headers.push('x-overhead-ms', (account.markFirstByte() + attempts.queuedMs).toFixed(2));
}

function fail(request: InferenceRequest, headers: HeaderList, rendered: Rendered): void {
  const { response } = request;
  // The headers were sent: all that is left is to cut the response off.
  if (response.headersSent) response.destroy();
  else if (!response.destroyed) sendError(request, headers, rendered);
}

function toErrorEvent(error: InferenceError, { kind }: Task): string {
  const body = kind === 'chat' ? { delta: {} } : { text: '' };
  const choices = [{ index: 0, ...body, finish_reason: 'error' }];
  return JSON.stringify({ ...error.toBody(), choices });
}
