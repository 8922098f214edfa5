// A deployment as people see it.

import type { Deployments, Shown } from './deployments.ts';
import { isResting } from './ladder.ts';
import type { ReplicaFacts } from './scale.ts';
import type { DeploymentView } from './schema.ts';

export function toView(deployments: Pick<Deployments, 'waiting'>, shown: Shown): DeploymentView {
  const { stored, live } = shown;
  const { env, ...spec } = stored.spec;
  const replicas = live?.replicas() ?? [];
  return {
    id: stored.id,
    name: stored.name,
    ...spec,
    args: [...spec.args],
    schedule: [...spec.schedule],
    current_min: live?.min ?? spec.min,
    env: Object.keys(env),
    revision: stored.revision,
    status: toStatus(shown),
    reason: live?.reason ?? null,
    running: replicas.reduce((sum, { outstanding }) => sum + outstanding, 0),
    waiting: deployments.waiting(spec.model),
    replicas: replicas.map((replica) => ({
      id: replica.id,
      revision: replica.revision,
      state: replica.state,
      instance_id: live?.instanceOf(replica.id) ?? null,
      progress: live?.progressOf(replica.id) ?? null,
      requests: replica.outstanding,
      started_at: new Date(replica.startedAt).toISOString(),
      ready_at: replica.readyAt === null ? null : new Date(replica.readyAt).toISOString(),
    })),
    can_roll_back: stored.canRollBack,
    in_file: stored.inFile,
    created_at: new Date(stored.createdAt).toISOString(),
  };
}

function toStatus({ stored, live }: Shown): DeploymentView['status'] {
  const replicas = live?.replicas() ?? [];
  if (stored.isStopped) return replicas.length === 0 ? 'stopped' : 'stopping';
  const states = replicas.map(({ state }) => state);
  // The next request of a draining replica ends its draining.
  const isReady = ({ state, revision }: ReplicaFacts) =>
    state === 'ready' || (state === 'draining' && revision === stored.revision);
  if (replicas.some(isReady)) return 'ready';
  if (live?.hasFailed) return 'failed';
  if (states.includes('starting')) return 'starting';
  return states.some(isResting) ? 'asleep' : 'idle';
}
