// One request from its checked body to the last byte of its answer: plan, attempt, envelope, meter. Plain
// answers and streams part ways here and nowhere else.

import type { FastifyReply, FastifyRequest } from 'fastify';
import { principalOf } from '../accounts/authenticate.ts';
import { clientGone } from '../lib/client-gone.ts';
import type { Clock } from '../lib/clock.ts';
import { createEventStreams, type EventStream } from '../lib/sse.ts';
import { type Attempts, newTrail, type RunningStream, type Trail } from './attempt.ts';
import type { Catalog } from './catalog.ts';
import type { Call, Task, Usage } from './engine.ts';
import { type InferenceError, internalError, modelNotFound, toInferenceError } from './errors.ts';
import type { Meter, Served } from './meter.ts';
import { makePlan } from './plan.ts';
import type { TokenCounter } from './tokens.ts';
import { createChunkWriter, newEnvelope, toAnswer } from './wire.ts';

export interface ServingParts {
  catalog: Catalog;
  counter: TokenCounter;
  attempts: Attempts;
  meter: Meter;
  clock: Clock;
}

export type Serve = (request: FastifyRequest, reply: FastifyReply, task: Task) => Promise<unknown>;

export function createServe({ catalog, counter, attempts, meter, clock }: ServingParts): Serve {
  const eventStreams = createEventStreams();

  return async (request, reply, task) => {
    const asked = catalog.find(task.body.model);
    if (asked === undefined) throw modelNotFound(task.body.model);
    const signal = clientGone(reply.raw);
    const bodyBytes = Number(request.headers['content-length'] ?? Number.POSITIVE_INFINITY);
    const { served } = await makePlan(catalog, counter, asked, { task, bodyBytes });
    const trail = newTrail();
    const account = startAccount(reply, trail);
    const call: Call = {
      envelope: newEnvelope(task.kind, served.id, clock.now()),
      signal,
      caller: callerOf(request),
      priority: task.body.priority ?? 0,
      contextWindow: served.contextWindow,
      onUsage: account.used,
    };
    try {
      if (task.body.stream !== true) {
        const answer = await attempts.answer(served, task, call, trail);
        account.used(answer.usage);
        announce(reply, trail, account);
        return toAnswer(call.envelope, answer);
      }
      const running = await attempts.stream(served, task, call, trail);
      account.hasToken();
      announce(reply, trail, account);
      reply.header('openai-processing-ms', Math.round(reply.elapsedTime));
      await relay(reply, eventStreams.open(reply, signal), running, { task, call, account });
      return reply;
    } catch (error) {
      account.failed();
      // Nobody is left to tell.
      if (signal.aborted) return reply.hijack();
      if (!reply.sent) announce(reply, trail, account);
      throw toInferenceError(error, served.id) ?? error;
    } finally {
      meter.record({
        operation: task.kind === 'chat' ? 'chat' : 'text_completion',
        asked: asked.id,
        served: served.id,
        backend: trail.backend?.name ?? 'none',
        ...account.close(signal.aborted),
      });
    }
  };
}

/** Who answered, and what of the time until now was spent here. */
function announce(reply: FastifyReply, trail: Trail, account: Account): void {
  if (trail.backend !== null) reply.header('x-served-by', trail.backend.name);
  reply.header('x-overhead-ms', (account.begun() + trail.queuedMs).toFixed(2));
}

/** Sends a stream that has begun. What fails from here on can only be told inside the stream. */
async function relay(
  reply: FastifyReply,
  events: EventStream,
  running: RunningStream,
  { task, call, account }: { task: Task; call: Call; account: Account },
): Promise<void> {
  const { include_usage, continuous_usage_stats } = task.body.stream_options ?? {};
  const write = createChunkWriter(call.envelope, include_usage === true);

  /** What comes after these items: the rest from another backend where they break off. */
  async function pass(items: RunningStream['items']): Promise<RunningStream['items'] | null> {
    try {
      for await (const item of items) {
        if (typeof item === 'string') await events.pass(item);
        else if (item.choices.length > 0) {
          const usage = continuous_usage_stats === true ? account.usage() : null;
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
    if (include_usage) await events.send(write({ choices: [], usage: account.usage() }));
  } catch (error) {
    account.failed();
    if (!call.signal.aborted) {
      const told = toInferenceError(error, call.envelope.model) ?? internalError();
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

/** Fairness is between keys; a person's sessions count as one. */
function callerOf(request: FastifyRequest): string {
  const principal = principalOf(request);
  return principal.kind === 'key' ? principal.keyId : principal.userId;
}

/** What one request used and how it went, gathered as it happens. */
interface Account {
  used(soFar: Usage): void;
  usage(): Usage | null;
  /** There is one, though its engine may count only at the end. */
  hasToken(): void;
  /** Its answer begins; tells the milliseconds spent here so far, neither in the engine nor in the queue. */
  begun(): number;
  failed(): void;
  close(aborted: boolean): Omit<Served, 'operation' | 'asked' | 'served' | 'backend'>;
}

function startAccount(reply: FastifyReply, trail: Trail): Account {
  let usage: Usage | null = null;
  let firstTokenMs: number | null = null;
  let overheadMs = 0;
  let hasFailed = false;
  return {
    used(soFar: Usage): void {
      usage = soFar;
      if (soFar.completion_tokens > 0) firstTokenMs ??= reply.elapsedTime;
    },
    usage: () => usage,
    hasToken(): void {
      firstTokenMs ??= reply.elapsedTime;
    },
    begun(): number {
      overheadMs = Math.max(0, reply.elapsedTime - trail.engineMs - trail.queuedMs);
      return overheadMs;
    },
    failed(): void {
      hasFailed = true;
    },
    close(aborted: boolean) {
      const outcome = aborted ? 'aborted' : hasFailed ? 'failed' : 'done';
      const { queuedMs } = trail;
      return { usage, firstTokenMs, outcome, durationMs: reply.elapsedTime, queuedMs, overheadMs };
    },
  };
}
