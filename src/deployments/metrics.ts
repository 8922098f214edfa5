// Metrics of the deployments that this server runs, read at each scrape.

import { Counter, Gauge, type Registry } from 'prom-client';
import type { DeploymentRuns } from '#deployments/cost/runs.ts';
import type { LiveDeployment } from '#deployments/life/live-deployment.ts';
import type { LiveDeployments } from '#deployments/life/live-deployments.ts';

const labelNames = ['millrace_deployment'] as const;
const states = ['starting', 'ready', 'draining', 'asleep', 'stopped', 'stopping'] as const;

export function watchDeployments(
  registry: Registry,
  deployments: Pick<LiveDeployments, 'all'>,
  runs: Pick<DeploymentRuns, 'loadMs'>,
): void {
  const gauge = (name: string, help: string, value: (live: LiveDeployment) => number | null) =>
    new Gauge({
      name,
      help,
      labelNames,
      registers: [registry],
      collect() {
        // A removed deployment must not keep its last value.
        this.reset();
        for (const live of deployments.all()) {
          const measured = value(live);
          if (measured !== null) this.labels(live.name).set(measured);
        }
      },
    });
  gauge(
    'millrace_deployment_replicas_wanted',
    'Replicas that the requests, the minimum and the schedule need.',
    ({ wanted }) => wanted,
  );
  gauge(
    'millrace_deployment_failed',
    '1 if its starts failed for good, so that an owner must change it or start it again.',
    ({ hasFailed }) => Number(hasFailed),
  );
  gauge(
    'millrace_deployment_held_requests',
    'Requests that wait for a replica.',
    ({ held }) => held,
  );
  gauge(
    'millrace_deployment_start_seconds',
    'How long a start takes: the median of the last five.',
    ({ id }) => toSeconds(runs.loadMs(id)),
  );
  new Gauge({
    name: 'millrace_deployment_replicas',
    help: 'Replicas by state.',
    labelNames: [...labelNames, 'millrace_state'],
    registers: [registry],
    collect() {
      this.reset();
      for (const live of deployments.all()) {
        const replicas = live.replicas();
        for (const state of states) {
          const count = replicas.filter((replica) => replica.state === state).length;
          this.labels(live.name, state).set(count);
        }
      }
    },
  });
  new Counter({
    name: 'millrace_deployment_failed_replicas_total',
    help: 'Replicas that failed, at their start or while they served.',
    labelNames,
    registers: [registry],
    collect() {
      this.reset();
      for (const live of deployments.all()) this.labels(live.name).inc(live.failedReplicas);
    },
  });
}

const toSeconds = (ms: number | null) => ms && ms / 1000;
