// Metrics of what the server depends on, read at each scrape: the database and the disk.

import { Gauge, type Registry } from 'prom-client';
import type { DatabaseHealth } from '#db/health.ts';
import type { DiskSpace } from '#lib/computer/disk-space.ts';
import millrace from '../../package.json' with { type: 'json' };

export function watchHealth(registry: Registry, health: DatabaseHealth, disk: DiskSpace): void {
  new Gauge({
    name: 'millrace_build_info',
    help: 'Always 1. Its labels are the versions of Millrace and Node.',
    labelNames: ['version', 'node_version'],
    registers: [registry],
  })
    .labels(millrace.version, process.versions.node)
    .set(1);
  new Gauge({
    name: 'millrace_database_up',
    help: '1 if the database answers, 0 during an outage.',
    registers: [registry],
    collect() {
      this.set(health.downMs === null ? 1 : 0);
    },
  });
  new Gauge({
    name: 'millrace_disk_free_bytes',
    help: 'Free space of the disk that holds the data directory.',
    registers: [registry],
    async collect() {
      this.set(await disk.freeBytes());
    },
  });
}
