// One request from its checked body to the last byte of its answer: plan, engine, envelope, meter. Plain
// answers and streams part ways here and nowhere else.

import assert from 'node:assert';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { principalOf } from '../accounts/authenticate.ts';
import { clientGone } from '../lib/client-gone.ts';
import type { Clock } from '../lib/clock.ts';
import { openEventStream } from '../lib/sse.ts';
import type { Backend, BackendList } from './backends/backend.ts';
import type { Catalog } from './catalog.ts';
import type { Call, Engine, EngineChunk, Envelope, Task, Usage, WireEvents } from './engine.ts';
import { type InferenceError, internalError, modelNotFound, toInferenceError } from './errors.ts';
import type { Meter, Served } from './meter.ts';
import { makePlan } from './plan.ts';
import type { TokenCounter } from './tokens.ts';
import { createChunkWriter, newEnvelope, toAnswer } from './wire.ts';

export interface ServingParts {
  catalog: Catalog;
  counter: TokenCounter;
  backends: BackendList;
  meter: Meter;
  clock: Clock;
}

export type Serve = (request: FastifyRequest, reply: FastifyReply, task: Task) => Promise<unknown>;

export function createServe({ catalog, counter, backends, meter, clock }: ServingParts): Serve {
  return async (request, reply, task) => {
    const asked = catalog.find(task.body.model);
    if (asked === undefined) throw modelNotFound(task.body.model);
    const signal = clientGone(reply.raw);
    const bodyBytes = Number(request.headers['content-length'] ?? Number.POSITIVE_INFINITY);
    const { served } = await makePlan(catalog, counter, asked, { task, bodyBytes });
    const backend = firstUsable(backends.forModel(served.id));
    const { engine, health } = backend;
    const account = startAccount(reply);
    const envelope = newEnvelope(task.kind, served.id, clock.now());
    const call: Call = {
      envelope,
      signal,
      caller: callerOf(request),
      priority: task.body.priority ?? 0,
      contextWindow: served.contextWindow,
      onUsage: account.used,
    };
    const begunMs = reply.elapsedTime;
    backend.outstanding += 1;
    try {
      if (task.body.stream !== true) return await plain(engine, task, call, envelope);
      return await streamed(engine, task, call, envelope);
    } catch (error) {
      account.failed();
      // Nobody is left to tell.
      if (signal.aborted) return reply.hijack();
      if (!reply.sent) announce(engine, reply.elapsedTime - begunMs);
      throw toInferenceError(error, served.id) ?? error;
    } finally {
      backend.outstanding -= 1;
      const outcome = account.close(signal.aborted);
      const { firstTokenMs } = outcome;
      const failed = outcome.outcome === 'failed';
      if (failed) health.failed('a request failed');
      else health.succeeded();
      backend.observe({ firstTokenMs, failed });
      meter.record({
        operation: task.kind === 'chat' ? 'chat' : 'text_completion',
        asked: asked.id,
        served: served.id,
        backend: engine.name,
        ...outcome,
      });
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
  account: Account,
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
    account.failed();
    if (!signal.aborted) {
      const told = toInferenceError(error, envelope.model);
      reply.log.error({ err: error, request_id: reply.request.id }, 'stream failed');
      await events.send(toErrorEvent(told ?? internalError(), task));
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

/** Fairness is between keys; a person's sessions count as one. */
function callerOf(request: FastifyRequest): string {
  const principal = principalOf(request);
  return principal.kind === 'key' ? principal.keyId : principal.userId;
}

/** What one request used and how it went, gathered as it happens. */
interface Account {
  used(soFar: Usage): void;
  usage(): Usage | null;
  failed(): void;
  close(aborted: boolean): Pick<Served, 'usage' | 'firstTokenMs' | 'outcome' | 'durationMs'>;
}

function startAccount(reply: FastifyReply): Account {
  let usage: Usage | null = null;
  let firstTokenMs: number | null = null;
  let hasFailed = false;
  return {
    used(soFar: Usage): void {
      usage = soFar;
      if (soFar.completion_tokens > 0) firstTokenMs ??= reply.elapsedTime;
    },
    usage: () => usage,
    failed(): void {
      hasFailed = true;
    },
    close(aborted: boolean) {
      const outcome = aborted ? 'aborted' : hasFailed ? 'failed' : 'done';
      return { usage, firstTokenMs, outcome, durationMs: reply.elapsedTime };
    },
  };
}
