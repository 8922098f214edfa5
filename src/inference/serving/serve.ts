// One request from its checked body to the last byte of its answer: limits, plan, attempt, envelope,
// recording. Plain answers and streams part ways here and nowhere else.

import type { FastifyBaseLogger } from 'fastify';
import type { RequestLimiter } from '#accounts/limits/request-limiter.ts';
import { ClientDisconnect } from '#http/client-disconnect.ts';
import { type Rendered, renderFailure } from '#http/error-format.ts';
import type { HeaderList } from '#http/header-list.ts';
import { createEventStreams, type EventStream, eventStreamHeaders } from '#http/sse.ts';
import {
  type Call,
  type EngineChunk,
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
import type { Catalog, CatalogEntry } from '#inference/models/catalog.ts';
import {
  elapsedMs,
  sendAnswer,
  sendFailure,
  sendWritten,
  toSharer,
  type Visit,
} from '#inference/request.ts';
import { type ChunkWriter, createChunkWriter, newEnvelope, toAnswer } from '#inference/wire.ts';
import type { Clock } from '#lib/clock.ts';
import { type Attempts, newTrail, type Trail } from './attempt.ts';
import { toAsk } from './estimate-reservation.ts';
import type { Planner } from './plan.ts';
import type { Recording, Recordings } from './request-accounting.ts';
import type { RunningStream } from './resumable-stream.ts';

export interface ServingParts {
  catalog: Catalog;
  limits: RequestLimiter;
  plan: Planner;
  attempts: Attempts;
  recordings: Recordings;
  clock: Clock;
  log: FastifyBaseLogger;
}

/** Answers in any case, and so never throws. */
export type Serve = (visit: Visit, task: Task) => Promise<void>;

export function createServe(parts: ServingParts): Serve {
  const { catalog, limits, plan, attempts, recordings, clock, log } = parts;
  const eventStreams = createEventStreams();

  async function serve(visit: Visit, task: Task): Promise<void> {
    const headers: HeaderList = ['x-request-id', visit.id];
    const asked = catalog.find(task.body.model);
    let isLetIn = false;
    try {
      if (asked === undefined) throw modelNotFound(task.body.model);
      const ask = toAsk(task, visit.bodyBytes, candidates(asked));
      const reservation = await limits.reserve(visit.caller, ask);
      if (reservation.headers !== null) headers.push(...reservation.headers);
      const trail = newTrail();
      const recording = recordings.open(visit, task, asked, { reservation, trail });
      isLetIn = true;
      await answer({ visit, task, headers, trail, recording, rest: {} }, asked);
    } catch (error) {
      const rendered = renderFailure(inferenceErrorFormat, error);
      if (!isLetIn) recordings.refused(visit, task.kind, task.body.model, codeOf(rendered));
      fail(visit, headers, rendered, error);
    }
  }

  async function answer(admitted: Admitted, asked: CatalogEntry): Promise<void> {
    const { visit, task, headers, trail, recording, rest } = admitted;
    const { response, caller, bodyBytes } = visit;
    const signal = new ClientDisconnect(response);
    let served = asked;
    try {
      const planned = plan(asked, { task, bodyBytes, signal });
      const way = planned instanceof Promise ? await planned : planned;
      served = way.served;
      recording.planned(way);
      const envelope = newEnvelope(task.kind, visit.id, served.id, clock.now());
      const showsUsage = task.body.stream_options?.include_usage === true;
      const call: Call = {
        envelope,
        signal,
        caller: toSharer(caller),
        priority: task.body.priority ?? 0,
        contextWindow: served.contextWindow,
        headers: recording.traceHeaders,
        onUsage: (soFar) => recording.used(soFar),
        onWork: (isAtWork) => recording.worked(isAtWork),
        onRest: showsUsage ? (members) => Object.assign(rest, members) : undefined,
      };
      if (task.body.stream !== true) {
        const whole = await attempts.answer(way, call, trail);
        recording.used(whole.usage);
        announce(headers, trail, recording);
        const counting = recording.complete();
        if (counting !== undefined) await counting;
        whole.usage = recording.usage() ?? whole.usage;
        if (signal.aborted) return;
        if (whole instanceof WrittenResponse) sendWritten(visit, headers, whole);
        else sendAnswer(visit, 200, headers, toAnswer(envelope, whole));
        return;
      }
      const running = await attempts.stream(way, call, trail);
      announce(headers, trail, recording);
      headers.push('openai-processing-ms', Math.round(elapsedMs(visit)), ...eventStreamHeaders);
      await relay(eventStreams.open(response, headers, signal), running, admitted, call);
    } catch (error) {
      const told = toInferenceError(error, served.id);
      recording.failed((told ?? internalError()).code);
      // Nobody is left to tell.
      if (signal.aborted) return;
      announce(headers, trail, recording);
      throw told ?? error;
    } finally {
      const counting = recording.complete();
      if (counting !== undefined) await counting;
      recording.close(signal.aborted);
    }
  }

  function fail(visit: Visit, headers: HeaderList, rendered: Rendered, error: unknown): void {
    if (rendered.status >= 500 && rendered.status !== 503) tell(visit, error, 'request failed');
    // Its headers have left: what went wrong after them is a fault of ours, and the client sees it cut off.
    if (visit.response.headersSent) visit.response.destroy();
    else if (!visit.response.destroyed) sendFailure(visit, headers, rendered);
  }

  const tell = (visit: Visit, error: unknown, what: string) =>
    log.error({ err: error, request_id: visit.id }, what);

  /** Those who may come to serve it. */
  function candidates(entry: CatalogEntry): CatalogEntry[] {
    const all: CatalogEntry[] = [];
    let next: CatalogEntry | undefined = entry;
    while (next !== undefined && !all.includes(next)) {
      all.push(next);
      next = next.contextFallback === null ? undefined : catalog.find(next.contextFallback.to);
    }
    return all;
  }

  /** Sends a stream that has begun. What fails from here on can only be told inside the stream. */
  async function relay(
    events: EventStream,
    running: RunningStream,
    { visit, task, recording, rest }: Admitted,
    call: Call,
  ): Promise<void> {
    const { include_usage, continuous_usage_stats } = task.body.stream_options ?? {};
    let write: ChunkWriter | null = null;

    /** Most streams come in the wire's form and need none. */
    function toEvent(chunk: EngineChunk): string {
      write ??= createChunkWriter(call.envelope, include_usage === true);
      return write(chunk);
    }

    const take = (item: EngineChunk | WireEvents) =>
      typeof item === 'string' ? events.pass(item) : sendChoices(item.choices);

    function sendChoices(choices: EngineChunk['choices']): Promise<void> | undefined {
      if (choices.length === 0) return undefined;
      const usage = continuous_usage_stats === true ? recording.usage() : null;
      return events.send(toEvent({ choices, usage }));
    }

    try {
      await running.deliver(take);
      if (include_usage) {
        await recording.complete();
        await events.send(toEvent({ choices: [], usage: recording.usage(), rest }));
      }
    } catch (error) {
      const told = toInferenceError(error, call.envelope.model) ?? internalError();
      recording.failed(told.code);
      if (!call.signal.aborted) {
        tell(visit, error, 'stream failed');
        await events.send(toErrorEvent(told, task));
      }
    }
    events.pass('data: [DONE]\n\n');
    events.end();
  }

  return serve;
}

/** A request within its limits, on its way. */
interface Admitted {
  readonly visit: Visit;
  readonly task: Task;
  readonly headers: HeaderList;
  readonly trail: Trail;
  readonly recording: Recording;
  /** What a server said of a stream besides its choices, for those who are shown its usage. */
  readonly rest: Record<string, unknown>;
}

/** Who answered, and what of the time until now was spent here. */
function announce(headers: HeaderList, trail: Trail, recording: Recording): void {
  if (trail.backend !== null) headers.push('x-served-by', trail.backend.name);
  headers.push('x-overhead-ms', (recording.begun() + trail.queuedMs).toFixed(2));
}

function toErrorEvent(error: InferenceError, { kind }: Task): string {
  const body = kind === 'chat' ? { delta: {} } : { text: '' };
  const choices = [{ index: 0, ...body, finish_reason: 'error' }];
  return JSON.stringify({ ...error.toBody(), choices });
}
