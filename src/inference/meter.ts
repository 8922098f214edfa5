// Counts what was served. Names follow OpenTelemetry's conventions for generative AI.

import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import type { Usage } from './engine.ts';

export interface Served {
  operation: 'chat' | 'text_completion';
  asked: string;
  served: string;
  backend: string;
  outcome: 'done' | 'aborted' | 'failed';
  usage: Usage | null;
  /** Null when nothing was generated. */
  firstTokenMs: number | null;
  durationMs: number;
}

export interface Meter {
  record(served: Served): void;
}

const seconds = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120];

export function createMeter(registry: Registry): Meter {
  const labelNames = [
    'gen_ai_operation_name',
    'gen_ai_request_model',
    'gen_ai_response_model',
    'millrace_backend',
  ] as const;
  const duration = new Histogram({
    name: 'gen_ai_server_request_duration_seconds',
    help: 'Time from the request to the end of its answer.',
    labelNames: [...labelNames, 'millrace_outcome'] as const,
    buckets: seconds,
    registers: [registry],
  });
  const firstToken = new Histogram({
    name: 'gen_ai_server_time_to_first_token_seconds',
    help: 'Time from the request to the first token of its answer.',
    labelNames,
    buckets: seconds,
    registers: [registry],
  });
  const tokens = new Counter({
    name: 'gen_ai_client_token_usage_total',
    help: 'Tokens read and generated, also for requests that were aborted or failed.',
    labelNames: [...labelNames, 'gen_ai_token_type'] as const,
    registers: [registry],
  });

  return {
    record({ operation, asked, served, backend, outcome, usage, firstTokenMs, durationMs }) {
      const labels = [operation, asked, served, backend] as const;
      duration.labels(...labels, outcome).observe(durationMs / 1000);
      if (firstTokenMs !== null) firstToken.labels(...labels).observe(firstTokenMs / 1000);
      if (usage === null) return;
      tokens.labels(...labels, 'input').inc(usage.prompt_tokens);
      tokens.labels(...labels, 'output').inc(usage.completion_tokens);
    },
  };
}

export interface Load {
  /** Answers being generated now. */
  running: number;
  /** Requests that wait for their turn. */
  queued: number;
  loaded: boolean;
}

/** How busy a model on this machine is, read whenever metrics are. */
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
