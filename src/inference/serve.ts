// One request from its checked body to the last byte of its answer: plan, engine, envelope, meter. Plain
// answers and streams part ways here and nowhere else.

import assert from 'node:assert';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { principalOf } from '../accounts/authenticate.ts';
import type { Limits, Payer } from '../accounts/limits/limits.ts';
import { clientGone } from '../lib/client-gone.ts';
import type { Clock } from '../lib/clock.ts';
import { openEventStream } from '../lib/sse.ts';
import { toAsk } from './ask.ts';
import type { Backend, BackendList } from './backends/backend.ts';
import type { Catalog, CatalogEntry } from './catalog.ts';
import type { Call, Engine, EngineChunk, Envelope, Task, WireEvents } from './engine.ts';
import { type InferenceError, internalError, modelNotFound, toInferenceError } from './errors.ts';
import { makePlan } from './plan.ts';
import type { OpenRecording, Recording } from './recording.ts';
import type { TokenCounter } from './tokens.ts';
import { createChunkWriter, newEnvelope, toAnswer } from './wire.ts';

export interface ServingParts {
  catalog: Catalog;
  counter: TokenCounter;
  backends: BackendList;
  limits: Limits;
  openRecording: OpenRecording;
  clock: Clock;
}

export type Serve = (request: FastifyRequest, reply: FastifyReply, task: Task) => Promise<unknown>;

export function createServe({
  catalog,
  counter,
  backends,
  limits,
  openRecording,
  clock,
}: ServingParts): Serve {
  return async (request, reply, task) => {
    const asked = catalog.find(task.body.model);
    if (asked === undefined) throw modelNotFound(task.body.model);
    const signal = clientGone(reply.raw);
    const bodyBytes = Number(request.headers['content-length'] ?? Number.POSITIVE_INFINITY);
    const ask = toAsk(task, bodyBytes, candidates(asked));
    const reservation = await limits.reserve(payerOf(request), ask);
    if (reservation.headers !== null) reply.headers(reservation.headers);
    const account = openRecording(reply, task, asked, reservation);
    let served = asked;
    let backend: Backend | null = null;
    let begunMs = reply.elapsedTime;
    try {
      ({ served } = await makePlan(catalog, counter, asked, { task, bodyBytes }));
      backend = firstUsable(backends.forModel(served.id));
      backend.outstanding += 1;
      const { engine } = backend;
      account.servedBy(served, engine.name);
      const envelope = newEnvelope(task.kind, served.id, clock.now());
      const call: Call = {
        envelope,
        signal,
        caller: callerOf(request),
        priority: task.body.priority ?? 0,
        contextWindow: served.contextWindow,
        onUsage: account.used,
      };
      begunMs = reply.elapsedTime;
      if (task.body.stream !== true) return await plain(engine, task, call, envelope);
      return await streamed(engine, task, call, envelope);
    } catch (error) {
      const told = toInferenceError(error, served.id);
      account.failed((told ?? internalError()).code);
      // Nobody is left to tell.
      if (signal.aborted) return reply.hijack();
      if (backend !== null && !reply.sent) announce(backend.engine, reply.elapsedTime - begunMs);
      throw told ?? error;
    } finally {
      const { outcome, firstTokenMs } = account.close(signal.aborted);
      if (backend !== null) {
        const failed = outcome === 'failed';
        backend.outstanding -= 1;
        if (failed) backend.health.failed('a request failed');
        else backend.health.succeeded();
        backend.observe({ firstTokenMs, failed });
      }
    }

    async function plain(engine: Engine, task: Task, call: Call, envelope: Envelope) {
      const before = reply.elapsedTime;
      const answer = await engine.answer(task, call);
      account.used(answer.usage);
      announce(engine, reply.elapsedTime - before);
      return toAnswer(envelope, answer);
    }

    async function streamed(engine: Engine, task: Task, call: Call, envelope: Envelope) {
      const before = reply.elapsedTime;
      const chunks = await engine.stream(task, call);
      announce(engine, reply.elapsedTime - before);
      await relay(reply, chunks, envelope, task, call.signal, account);
      return reply;
    }

    /** Those who may come to serve it. */
    function candidates(entry: CatalogEntry): CatalogEntry[] {
      const fallback = entry.contextFallback && catalog.find(entry.contextFallback.to);
      return fallback == null ? [entry] : [entry, fallback];
    }

    function announce(engine: Engine, engineMs: number): void {
      reply.header('x-served-by', engine.name);
      reply.header('x-overhead-ms', Math.max(0, reply.elapsedTime - engineMs).toFixed(2));
    }
  };
}

/** The first that takes requests; where none does, the first says why. */
function firstUsable(list: readonly Backend[]): Backend {
  const usable = list.find(({ draining, health }) => !draining && health.state() !== 'ejected');
  const chosen = usable ?? list[0];
  assert(chosen !== undefined, 'a model without a backend has the stand-in');
  return chosen;
}

/** Sends a stream that has begun. What fails from here on can only be told inside the stream. */
async function relay(
  reply: FastifyReply,
  chunks: AsyncIterable<EngineChunk | WireEvents>,
  envelope: Envelope,
  task: Task,
  signal: AbortSignal,
  account: Recording,
): Promise<void> {
  const { include_usage, continuous_usage_stats } = task.body.stream_options ?? {};
  const includeUsage = include_usage === true;
  const write = createChunkWriter(envelope, includeUsage);
  reply.header('openai-processing-ms', Math.round(reply.elapsedTime));
  const events = openEventStream(reply, signal);
  try {
    for await (const item of chunks) {
      if (typeof item === 'string') await events.pass(item);
      else if (item.choices.length > 0) {
        const usage = continuous_usage_stats === true ? account.usage() : null;
        await events.send(write({ choices: item.choices, usage }));
      }
    }
    if (includeUsage) await events.send(write({ choices: [], usage: account.usage() }));
  } catch (error) {
    const told = toInferenceError(error, envelope.model) ?? internalError();
    account.failed(told.code);
    if (!signal.aborted) {
      reply.log.error({ err: error, request_id: reply.request.id }, 'stream failed');
      await events.send(toErrorEvent(told, task));
    }
  }
  events.send('[DONE]');
  events.end();
}

function toErrorEvent(error: InferenceError, { kind }: Task): string {
  const body = kind === 'chat' ? { delta: {} } : { text: '' };
  const choices = [{ index: 0, ...body, finish_reason: 'error' }];
  return JSON.stringify({ ...error.toBody(), choices });
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
