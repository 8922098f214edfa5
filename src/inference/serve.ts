// One request from its checked body to the last byte of its answer: limits, plan, attempt, envelope,
// recording. Plain answers and streams part ways here and nowhere else.

import type { FastifyReply, FastifyRequest } from 'fastify';
import { principalOf } from '../accounts/authenticate.ts';
import type { Limits, Payer } from '../accounts/limits/limits.ts';
import { clientGone } from '../lib/client-gone.ts';
import type { Clock } from '../lib/clock.ts';
import { createEventStreams, type EventStream } from '../lib/sse.ts';
import { toAsk } from './ask.ts';
import { type Attempts, newTrail, type Trail } from './attempt.ts';
import type { Catalog, CatalogEntry } from './catalog.ts';
import type { Call, Task } from './engine.ts';
import { type InferenceError, internalError, modelNotFound, toInferenceError } from './errors.ts';
import type { Planner } from './plan.ts';
import type { OpenRecording, Recording } from './recording.ts';
import type { RunningStream } from './running-stream.ts';
import { createChunkWriter, newEnvelope, toAnswer } from './wire.ts';

export interface ServingParts {
  catalog: Catalog;
  limits: Limits;
  plan: Planner;
  attempts: Attempts;
  openRecording: OpenRecording;
  clock: Clock;
}

export type Serve = (request: FastifyRequest, reply: FastifyReply, task: Task) => Promise<unknown>;

export function createServe(parts: ServingParts): Serve {
  const { catalog, limits, plan, attempts, openRecording, clock } = parts;
  const eventStreams = createEventStreams();

  return async (request, reply, task) => {
    const asked = catalog.find(task.body.model);
    if (asked === undefined) throw modelNotFound(task.body.model);
    const signal = clientGone(reply.raw);
    const bodyBytes = bytesOf(request);
    const reserved = limits.reserve(payerOf(request), toAsk(task, bodyBytes, candidates(asked)));
    const reservation = reserved instanceof Promise ? await reserved : reserved;
    if (reservation.headers !== null) reply.headers(reservation.headers);
    const trail = newTrail();
    const recording = openRecording(reply, task, asked, { reservation, trail });
    let served = asked;
    try {
      const planned = plan(asked, { task, bodyBytes, signal });
      const way = planned instanceof Promise ? await planned : planned;
      served = way.served;
      recording.planned(way);
      const envelope = newEnvelope(task.kind, served.id, clock.now());
      const call: Call = {
        envelope,
        signal,
        caller: callerOf(request),
        priority: task.body.priority ?? 0,
        contextWindow: served.contextWindow,
        headers: recording.traceHeaders,
        onUsage: recording.used,
      };
      if (task.body.stream !== true) {
        const answer = await attempts.answer(way, call, trail);
        recording.used(answer.usage);
        announce(reply, trail, recording);
        const counting = recording.complete();
        if (counting !== undefined) await counting;
        answer.usage = recording.usage() ?? answer.usage;
        return toAnswer(envelope, answer);
      }
      const running = await attempts.stream(way, call, trail);
      announce(reply, trail, recording);
      reply.header('openai-processing-ms', Math.round(reply.elapsedTime));
      await relay(reply, eventStreams.open(reply, signal), running, { task, call, recording });
      return reply;
    } catch (error) {
      const told = toInferenceError(error, served.id);
      recording.failed((told ?? internalError()).code);
      // Nobody is left to tell.
      if (signal.aborted) return reply.hijack();
      if (!reply.sent) announce(reply, trail, recording);
      throw told ?? error;
    } finally {
      const counting = recording.complete();
      if (counting !== undefined) await counting;
      recording.close(signal.aborted);
    }
  };

  /** Those who may come to serve it. */
  function candidates(entry: CatalogEntry): CatalogEntry[] {
    const fallback = entry.contextFallback && catalog.find(entry.contextFallback.to);
    return fallback ? [entry, fallback] : [entry];
  }
}

/** Who answered, and what of the time until now was spent here. */
function announce(reply: FastifyReply, trail: Trail, recording: Recording): void {
  if (trail.backend !== null) reply.header('x-served-by', trail.backend.name);
  reply.header('x-overhead-ms', (recording.begun() + trail.queuedMs).toFixed(2));
}

/** Sends a stream that has begun. What fails from here on can only be told inside the stream. */
async function relay(
  reply: FastifyReply,
  events: EventStream,
  running: RunningStream,
  { task, call, recording }: { task: Task; call: Call; recording: Recording },
): Promise<void> {
  const { include_usage, continuous_usage_stats } = task.body.stream_options ?? {};
  const write = createChunkWriter(call.envelope, include_usage === true);

  /** What comes after these items: the rest from another backend where they break off. */
  async function pass(items: RunningStream['items']): Promise<RunningStream['items'] | null> {
    try {
      for await (const item of items) {
        if (typeof item === 'string') await events.pass(item);
        else if (item.choices.length > 0) {
          const usage = continuous_usage_stats === true ? recording.usage() : null;
          await events.send(write({ choices: item.choices, usage }));
        }
        running.sent(item);
      }
      return null;
    } catch (error) {
      return await running.resume(error);
    }
  }

  try {
    let items: RunningStream['items'] | null = running.items;
    while (items !== null) items = await pass(items);
    if (include_usage) {
      await recording.complete();
      await events.send(write({ choices: [], usage: recording.usage() }));
    }
  } catch (error) {
    const told = toInferenceError(error, call.envelope.model) ?? internalError();
    recording.failed(told.code);
    if (!call.signal.aborted) {
      reply.log.error({ err: error, request_id: reply.request.id }, 'stream failed');
      await events.send(toErrorEvent(told, task));
    }
  } finally {
    running.end();
  }
  events.send('[DONE]');
  events.end();
}

function toErrorEvent(error: InferenceError, { kind }: Task): string {
  const body = kind === 'chat' ? { delta: {} } : { text: '' };
  const choices = [{ index: 0, ...body, finish_reason: 'error' }];
  return JSON.stringify({ ...error.toBody(), choices });
}

/** A body that came in chunks has no length of its own. */
function bytesOf({ headers, body }: FastifyRequest): number {
  const length = headers['content-length'];
  return length === undefined ? Buffer.byteLength(JSON.stringify(body)) : Number(length);
}

/** Limits of the key and of its account; of a person who is signed in, the account's alone. */
function payerOf(request: FastifyRequest): Payer {
  const principal = principalOf(request);
  const { accountId } = principal;
  return { accountId, keyId: principal.kind === 'key' ? principal.keyId : null };
}

/** Fairness is between keys; a person's sessions count as one. */
function callerOf(request: FastifyRequest): string {
  const principal = principalOf(request);
  return principal.kind === 'key' ? principal.keyId : principal.userId;
}
