// One request from its checked body to the last byte of its response: limits, plan, backend, envelope, accounting.
// Whole responses and streams part ways here and nowhere else.

import type { FastifyBaseLogger } from 'fastify';
import type { Lease } from '#http/body/room.ts';
import { isFault, type Rendered, renderFailure } from '#http/error-format.ts';
import { type HeaderList, toHeaderObject } from '#http/response-headers.ts';
import { isText } from '#inference/content-parts.ts';
import { isUnwanted, parseWritten } from '#inference/delivery.ts';
import type { Call, Envelope, Task } from '#inference/engine.ts';
import { codeOf, internalError, toInferenceError } from '#inference/errors.ts';
import { type ImageFetching, inlineMedia } from '#inference/images/remote-media.ts';
import type { CatalogEntry } from '#inference/models/catalog.ts';
import { type InferenceRequest, toSharer, withElapsed } from '#inference/request.ts';
import { newEnvelope } from '#inference/wire/envelope.ts';
import { newUsage, WrittenResponse } from '#inference/wire/response.ts';
import { backgroundPriority } from '#lib/async/fair-queue.ts';
import type { Clock } from '#lib/clock.ts';
import { type AdmitParts, admit } from './admit.ts';
import { type AttemptLog, type AttemptParts, newAttemptLog, respond } from './attempts.ts';
import { compute, planComputed, toPromptTokens } from './computed.ts';
import { OutgoingStream } from './outgoing-stream.ts';
import { withOwnNames } from './own-names.ts';
import { type Plan, type PlanParts, planRequest } from './plan.ts';
import type { RequestAccount, RequestAccounting } from './request-accounting.ts';
import type { ResponseFormat } from './response-format.ts';
import { openStream } from './resumable-stream.ts';

export interface ServeOptions extends AdmitParts, PlanParts, AttemptParts {
  readonly images: ImageFetching;
  /** Silence after which a stream is kept alive. */
  readonly keepAliveMs: number;
  readonly accounting: RequestAccounting;
  readonly clock: Clock;
  readonly log: FastifyBaseLogger;
}

/** Delivers a response in every case, and so never throws. */
export type Serve = (
  request: InferenceRequest,
  task: Task,
  format: ResponseFormat,
) => Promise<void>;

export function createServe(options: ServeOptions): Serve {
  return (request, task, format) => serve(options, request, task, format);
}

/** A request that is within its limits. */
export interface AdmittedRequest {
  readonly request: InferenceRequest;
  readonly task: Task;
  readonly format: ResponseFormat;
  /** The model that was requested. */
  readonly asked: CatalogEntry;
  /** Headers of the response, extended on the way. */
  readonly headers: HeaderList;
  readonly attempts: AttemptLog;
  readonly account: RequestAccount;
}

async function serve(
  context: ServeOptions,
  request: InferenceRequest,
  task: Task,
  format: ResponseFormat,
): Promise<void> {
  const { accounting } = context;
  const { operation } = format;
  const { model } = task.body;
  const headers: HeaderList = ['x-request-id', request.id, ...request.fixedHeaders];
  let isAdmitted = false;
  try {
    const { asked, reservation } = await admit(context, request, task, format);
    if (reservation.headers !== null) headers.push(...reservation.headers);
    const attempts = newAttemptLog();
    const account = accounting.open(request, { operation, task, asked, reservation, attempts });
    isAdmitted = true;
    await serveAdmitted(context, { request, task, format, asked, headers, attempts, account });
  } catch (error) {
    const rendered = failWith(context, { request, format, headers }, error);
    if (!isAdmitted) accounting.refused(request, operation, model, codeOf(rendered));
  }
}

function failWith(
  { log }: ServeOptions,
  { request, format, headers }: Pick<AdmittedRequest, 'request' | 'format' | 'headers'>,
  error: unknown,
): Rendered {
  const rendered = renderFailure(format.errors, error);
  if (isFault(rendered)) {
    log.error({ err: error, request_id: request.id }, 'request failed');
  }
  // Headers that were set before the failure are kept.
  const all = Object.entries({ ...toHeaderObject(headers), ...rendered.headers }).flat();
  const body = format.errors.withId?.(rendered.body, request.id) ?? rendered.body;
  request.delivery.fail(rendered.status, withElapsed(request, all), body);
  return rendered;
}

async function serveAdmitted(context: ServeOptions, admitted: AdmittedRequest): Promise<void> {
  const { request, task, asked, account, format } = admitted;
  const { bodyBytes, delivery } = request;
  const { signal } = delivery;
  const isStream = task.body.stream === true;
  const newStream = (envelope: Envelope) =>
    new OutgoingStream(admitted, envelope, context.keepAliveMs);
  let served = asked;
  let stream: OutgoingStream | null = null;
  let images: Lease | null = null;
  try {
    const { computation } = format;
    const caller = toSharer(request.caller);
    const inlined = isText(task)
      ? { task, lease: null }
      : await inlineMedia(task, context.images, { caller, signal });
    images = inlined.lease;
    const plan =
      computation === undefined
        ? await planRequest(context, asked, { task: inlined.task, bodyBytes, signal })
        : planComputed(context.backends, asked, task, computation);
    served = plan.served;
    account.setPlan(plan);
    const envelope = toEnvelope(context, admitted, served);
    if (computation !== undefined) {
      await serveComputed(context, admitted, plan, toCall(admitted, plan, envelope));
    } else if (isStream) {
      stream = newStream(envelope);
      await serveStream(context, admitted, plan, stream);
    } else await serveWhole(context, admitted, plan, envelope);
  } catch (error) {
    // A response that is no longer wanted is not told how it ended, so the Responses API stores nothing of it.
    if (isUnwanted(signal)) return;
    const cause = signal.aborted ? signal.reason : error;
    const found = toInferenceError(cause, served.id);
    const known = found && withOwnNames(found, format.names);
    const shown = known ?? internalError();
    account.markFailed(shown.code);
    if (stream?.isOpen || (isStream && format.isSentInStream?.(shown))) {
      stream ??= newStream(toEnvelope(context, admitted, served));
      await stream.fail(shown);
    } else {
      announce(admitted);
      // Sent before tokens are counted: the client of a failed request need not wait for the count.
      failWith(context, admitted, known ?? cause);
    }
    if (stream?.hasStarted)
      context.log.error({ err: cause, request_id: request.id }, 'stream failed');
  } finally {
    stream?.close();
    await account.completeCounts();
    images?.leave();
    account.close(isUnwanted(signal));
  }
}

const toEnvelope = (
  { clock }: ServeOptions,
  { request, task }: AdmittedRequest,
  served: CatalogEntry,
): Envelope => newEnvelope(task.kind, request.id, served.id, clock.now());

function toCall(
  { request, task, account }: AdmittedRequest,
  { served }: Plan,
  envelope: Envelope,
  streamed: Pick<Call, 'onRest' | 'onHeld'> = {},
): Call {
  return {
    envelope,
    signal: request.delivery.signal,
    caller: toSharer(request.caller),
    priority: request.background === undefined ? (task.body.priority ?? 0) : backgroundPriority,
    contextWindow: served.contextWindow,
    headers: account.traceHeaders,
    onUsage: (soFar) => account.setUsage(soFar),
    onWork: (isAtWork) => account.setAtWork(isAtWork),
    ...streamed,
  };
}

async function serveWhole(
  context: ServeOptions,
  admitted: AdmittedRequest,
  plan: Plan,
  envelope: Envelope,
): Promise<void> {
  const { request, format, headers, attempts, account } = admitted;
  const { delivery } = request;
  const whole = await respond(context, plan, toCall(admitted, plan, envelope), attempts);
  account.setUsage(whole.usage);
  announce(admitted);
  await account.completeCounts();
  whole.usage = account.usage();
  await account.save();
  delivery.signal.throwIfAborted();
  if (whole instanceof WrittenResponse && format.takesWritten) {
    delivery.sendWritten(withElapsed(request, headers), whole);
    return;
  }
  const parsed = whole instanceof WrittenResponse ? parseWritten(whole) : whole;
  const body = await format.toWhole(parsed, envelope);
  delivery.send(200, withElapsed(request, headers), body);
}

async function serveComputed(
  context: ServeOptions,
  admitted: AdmittedRequest,
  plan: Plan,
  call: Call,
): Promise<void> {
  const { request, format, headers, attempts: log, account } = admitted;
  const { delivery } = request;
  if (format.computation === undefined) throw new Error('The request has nothing to compute');
  const computed = await compute(context, plan, format.computation, { call, log });
  if (computed.promptTokens !== 0)
    account.setUsage(newUsage(toPromptTokens(computed, plan.task), 0));
  announce(admitted);
  await account.completeCounts();
  const body = await computed.toBody(plan.served, account.usage());
  await account.save();
  delivery.signal.throwIfAborted();
  if (body instanceof WrittenResponse) delivery.sendWritten(withElapsed(request, headers), body);
  else delivery.send(200, withElapsed(request, headers), body);
}

async function serveStream(
  context: ServeOptions,
  admitted: AdmittedRequest,
  plan: Plan,
  stream: OutgoingStream,
): Promise<void> {
  const isProgressWanted = admitted.request.headers['x-millrace-progress'] === '1';
  const call = toCall(admitted, plan, stream.envelope, {
    onRest: stream.takeRest,
    onHeld: ({ progress }) => stream.hold(isProgressWanted ? progress : undefined),
  });
  const generated = await openStream(context, plan, call, admitted.attempts);
  announce(admitted);
  await stream.start();
  await generated.deliver((item) => stream.take(item));
  await admitted.account.save();
  await stream.end();
}

/** Adds the headers that name the backend and the time spent in Millrace until now. */
function announce({ headers, attempts, account }: AdmittedRequest): void {
  if (attempts.backend !== null) headers.push('x-served-by', attempts.backend.name);
  if (attempts.coldStartMs !== null)
    headers.push('x-cold-start-ms', Math.round(attempts.coldStartMs));
  headers.push('x-overhead-ms', (account.markFirstByte() + attempts.queuedMs).toFixed(2));
}
