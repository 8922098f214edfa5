// Metrics of the usage recorder and of the table it fills, read at each scrape.

import { Gauge, type Registry } from 'prom-client';
import type { RecorderStatus } from './recorder.ts';
import type { UsageStorage } from './schema.ts';

export function watchUsage(
  registry: Registry,
  read: () => RecorderStatus & { spooled: number; refused: number; storage: UsageStorage },
): void {
  const gauge = (name: string, help: string, value: (status: ReturnType<typeof read>) => number) =>
    new Gauge({
      name,
      help,
      registers: [registry],
      collect() {
        this.set(value(read()));
      },
    });
  gauge(
    'millrace_usage_rows',
    'Stored requests, as of the last sweep.',
    ({ storage }) => storage.rows,
  );
  gauge(
    'millrace_usage_rows_max',
    'Stored requests above which the oldest are deleted: usage.max_rows.',
    ({ storage }) => storage.max_rows,
  );
  gauge('millrace_usage_open', 'Requests that are running.', ({ open }) => open);
  gauge(
    'millrace_usage_pending',
    'Ended requests that are not in the database yet.',
    (status) => status.pending,
  );
  gauge(
    'millrace_usage_spooled',
    'Requests whose row waits in the data directory for PostgreSQL.',
    (status) => status.spooled,
  );
  gauge(
    'millrace_usage_refused',
    'Requests whose row PostgreSQL refused and the server set aside since its start.',
    (status) => status.refused,
  );
  gauge(
    'millrace_usage_dropped',
    'Requests whose row was lost since the start of the server.',
    (status) => status.dropped,
  );
  gauge(
    'millrace_usage_slowest_write_seconds',
    'Longest time from the end of a request to its row in the database since the start of the server.',
    (status) => status.slowestMs / 1000,
  );
}
