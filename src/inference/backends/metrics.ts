// Metrics of backends, read at each scrape.

import { Counter, Gauge, type Registry } from 'prom-client';
import type { ManagedBackend } from './managed.ts';

const labelNames = ['gen_ai_request_model', 'millrace_backend'] as const;
const healthValues = { healthy: 1, probation: 0.5, ejected: 0 } as const;

export function watchBackends(registry: Registry, list: () => readonly ManagedBackend[]): void {
  const gauge = (name: string, help: string, value: (backend: ManagedBackend) => number) =>
    new Gauge({
      name,
      help,
      labelNames,
      registers: [registry],
      collect() {
        // A removed backend must not keep its last value.
        this.reset();
        for (const backend of list()) this.labels(backend.model, backend.name).set(value(backend));
      },
    });
  gauge(
    'millrace_backend_health',
    '1 healthy, 0.5 on probation, 0 ejected.',
    ({ health }) => healthValues[health.state()],
  );
  gauge(
    'millrace_backend_outstanding_requests',
    'Requests a backend is working on.',
    ({ outstanding }) => outstanding,
  );
  const count = (name: string, help: string, value: (backend: ManagedBackend) => number) =>
    new Counter({
      name,
      help,
      labelNames,
      registers: [registry],
      collect() {
        this.reset();
        for (const backend of list()) this.labels(backend.model, backend.name).inc(value(backend));
      },
    });
  count('millrace_backend_ejections_total', 'How often a backend was ejected.', ({ health }) =>
    health.ejections(),
  );
  count(
    'millrace_backend_implausible_counts_total',
    'Responses whose token counts could not be true and were counted here instead.',
    ({ implausible }) => implausible.total(),
  );
}
