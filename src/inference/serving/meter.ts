// Metrics of served requests. Names follow OpenTelemetry's conventions for generative AI.

import { Counter, Gauge, type Registry } from 'prom-client';
import type { EngineError } from '#inference/engine.ts';
import type { Usage } from '#inference/wire/response.ts';
import { memoize } from '#lib/memory/caches.ts';
import { counter, histogram } from '#lib/telemetry/series.ts';

export interface ServedRequest {
  operation: string;
  asked: string;
  served: string;
  backend: string;
  outcome: 'done' | 'aborted' | 'failed';
  usage: Usage | null;
  /** Null if nothing was generated. */
  firstTokenMs: number | null;
  durationMs: number;
  /** Time spent waiting for a backend slot. */
  queuedMs: number;
  /** Time spent in this server until the first byte, excluding the engine and the queue. */
  overheadMs: number;
}

interface MeteredCaller {
  readonly accountId: string;
  /** Null if a person is signed in. */
  readonly keyId: string | null;
}

export interface Meter {
  record(served: ServedRequest, caller: MeteredCaller): void;
  /** A backend failed or was overloaded, whether or not another one answered. */
  failed(backend: Labelled, error: EngineError): void;
  /** A broken stream was continued on this backend. */
  continued(backend: Labelled): void;
  /** A model's queue refused a request. */
  refused(model: string, reason: 'full' | 'deadline'): void;
  /** A request exceeded a limit of its key or account. */
  limited(refusal: { limit: string; scope: 'key' | 'account' }): void;
}

interface Labelled {
  readonly model: string;
  readonly name: string;
}

const backendLabels = ['gen_ai_response_model', 'millrace_backend'] as const;
const shortSeconds = [0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.05, 0.25, 1];
const seconds = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120];

export function createMeter(registry: Registry): Meter {
  const count = <Names extends string>(name: string, help: string, labelNames: readonly Names[]) =>
    new Counter({ name, help, labelNames, registers: [registry] });
  const failures = count(
    'millrace_backend_failures_total',
    'Requests a backend failed at or was too busy for, also where another one answered.',
    [...backendLabels, 'millrace_failure'],
  );
  const continuations = count(
    'millrace_continued_streams_total',
    'Streams that broke elsewhere and went on at this backend.',
    backendLabels,
  );
  const refusals = count(
    'millrace_queue_refusals_total',
    'Requests turned away because the queue was full or the wait too long.',
    ['gen_ai_response_model', 'millrace_reason'],
  );
  const limitRefusals = count(
    'millrace_limit_refusals_total',
    'Requests turned away because a limit of their key or account was reached.',
    ['millrace_limit', 'millrace_scope'],
  );
  return {
    record: recordRequests(registry),
    limited: ({ limit, scope }) => limitRefusals.labels(limit, scope).inc(),
    failed({ model, name }, { failure, code }) {
      const kind = code === 'upstream_timeout' ? 'timeout' : failure;
      failures.labels(model, name, kind).inc();
    },
    continued: ({ model, name }) => continuations.labels(model, name).inc(),
    refused: (model, reason) => refusals.labels(model, reason).inc(),
  };
}

function recordRequests(registry: Registry): Meter['record'] {
  const labelNames = ['gen_ai_operation_name', 'gen_ai_request_model', ...backendLabels] as const;
  const duration = histogram(registry, {
    name: 'gen_ai_server_request_duration_seconds',
    help: 'Time from the request to the end of its answer.',
    labelNames: [...labelNames, 'millrace_outcome'],
    buckets: seconds,
  });
  const firstToken = histogram(registry, {
    name: 'gen_ai_server_time_to_first_token_seconds',
    help: 'Time from the request to the first token of its answer.',
    labelNames,
    buckets: seconds,
  });
  const tokens = counter(registry, {
    name: 'gen_ai_client_token_usage_total',
    help: 'Tokens read and generated, also for requests that were aborted or failed.',
    labelNames: [...labelNames, 'gen_ai_token_type'],
  });
  const overhead = histogram(registry, {
    name: 'millrace_overhead_seconds',
    help: 'Time until the first byte of an answer that was spent here and not in engine or queue.',
    labelNames: backendLabels,
    buckets: shortSeconds,
  });
  const queueWait = histogram(registry, {
    name: 'millrace_queue_wait_seconds',
    help: 'How long requests waited for a place at a backend, of those that had to.',
    labelNames: ['gen_ai_response_model'],
    buckets: seconds,
  });
  const seriesOf = memoize(
    ({ operation, asked, served, backend, outcome }: ServedRequest) =>
      `${operation} ${asked} ${served} ${backend} ${outcome}`,
    ({ operation, asked, served, backend, outcome }) => {
      const labels = [operation, asked, served, backend] as const;
      return {
        duration: duration(...labels, outcome),
        overhead: overhead(served, backend),
        firstToken: firstToken(...labels),
        input: tokens(...labels, 'input'),
        output: tokens(...labels, 'output'),
      };
    },
  );
  const countCaller = countCallers(registry);
  return (request, caller) => {
    countCaller(request, caller);
    const { outcome, usage, firstTokenMs, durationMs, queuedMs, overheadMs } = request;
    const own = seriesOf(request);
    own.duration.observe(durationMs / 1000);
    if (outcome === 'done') own.overhead.observe(overheadMs / 1000);
    if (queuedMs > 0) queueWait(request.served).observe(queuedMs / 1000);
    if (firstTokenMs !== null) own.firstToken.observe(firstTokenMs / 1000);
    if (usage === null) return;
    own.input.add(usage.prompt_tokens);
    own.output.add(usage.completion_tokens);
  };
}

/** Keys that have a counter of their own. The others of the same process are counted together. */
const maxCallers = 1_000;

function countCallers(registry: Registry): Meter['record'] {
  const labelNames = ['millrace_account', 'millrace_key'] as const;
  const requests = counter(registry, {
    name: 'millrace_key_requests_total',
    help: 'Requests of each API key. Those of people in the dashboard have no key.',
    labelNames: [...labelNames, 'millrace_outcome'],
  });
  const tokens = counter(registry, {
    name: 'millrace_key_tokens_total',
    help: 'Tokens read and generated for each API key.',
    labelNames: [...labelNames, 'gen_ai_token_type'],
  });
  const known = new Set<string>();
  return ({ outcome, usage }, { accountId, keyId }) => {
    const id = keyId ?? accountId;
    const isKnown = known.has(id) || known.size < maxCallers;
    if (isKnown) known.add(id);
    const labels = isKnown ? [accountId, keyId ?? ''] : ['other', 'other'];
    requests(...labels, outcome).add(1);
    if (usage === null) return;
    tokens(...labels, 'input').add(usage.prompt_tokens);
    tokens(...labels, 'output').add(usage.completion_tokens);
  };
}

export interface Load {
  /** Responses being generated now. */
  running: number;
  /** Requests waiting in the queue. */
  queued: number;
  loaded: boolean;
}

/** Reports the load of a model on this machine whenever metrics are read. */
export function watchLoad(registry: Registry, backend: string, read: () => Load): void {
  const gauge = (name: string, help: string, value: (load: Load) => number) =>
    new Gauge({
      name,
      help,
      labelNames: ['millrace_backend'],
      registers: [registry],
      collect() {
        this.labels(backend).set(value(read()));
      },
    });
  gauge('millrace_running_sequences', 'Answers being generated now.', ({ running }) => running);
  gauge('millrace_queued_requests', 'Requests waiting for their turn.', ({ queued }) => queued);
  gauge('millrace_model_loaded', 'Whether the model is in memory.', ({ loaded }) => Number(loaded));
}

/** Reports the queue length of each model whenever metrics are read. */
export function watchQueues(
  registry: Registry,
  models: () => readonly string[],
  queued: (model: string) => number,
): void {
  new Gauge({
    name: 'millrace_queue_length',
    help: 'Requests that wait for a place at a backend of the model.',
    labelNames: ['gen_ai_response_model'],
    registers: [registry],
    collect() {
      this.reset();
      for (const model of models()) this.labels(model).set(queued(model));
    },
  });
}
