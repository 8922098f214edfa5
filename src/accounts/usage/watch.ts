// How far behind usage is, read whenever metrics are.

import { Gauge, type Registry } from 'prom-client';
import type { UsageBuffer } from './usage.ts';

export function watchUsage(registry: Registry, read: () => UsageBuffer): void {
  const gauge = (name: string, help: string, value: (buffer: UsageBuffer) => number) =>
    new Gauge({
      name,
      help,
      registers: [registry],
      collect() {
        this.set(value(read()));
      },
    });
  gauge('millrace_usage_open', 'Requests that run now.', ({ open }) => open);
  gauge(
    'millrace_usage_pending',
    'Requests that ended and wait to be written.',
    (buffer) => buffer.pending,
  );
  gauge(
    'millrace_usage_dropped',
    'Requests whose row was lost since the start.',
    (buffer) => buffer.dropped,
  );
  gauge(
    'millrace_usage_slowest_write_seconds',
    'The longest that a request was from its end to the database, since the start.',
    (buffer) => buffer.slowestMs / 1000,
  );
}
