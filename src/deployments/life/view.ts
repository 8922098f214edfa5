// A deployment as people see it.

import type { ReplicaFacts } from '#deployments/decision/scale.ts';
import { isResting } from '#deployments/ground/ladder.ts';
import type { Stored } from '#deployments/ground/rows.ts';
import type { DeploymentView } from '#deployments/ground/schema.ts';
import type { LiveDeployment } from './live-deployment.ts';

/** What the row says. */
export function toSettingsView({ spec: { env, ...spec }, ...stored }: Stored) {
  return {
    id: stored.id,
    name: stored.name,
    ...spec,
    args: [...spec.args],
    schedule: [...spec.schedule],
    env: Object.keys(env),
    revision: stored.revision,
    can_roll_back: stored.canRollBack,
    in_file: stored.inFile,
    created_at: new Date(stored.createdAt).toISOString(),
  };
}

/** `live` is undefined if this server does not run it. `waiting` is the number of requests that wait for its model. */
export function toView(
  stored: Stored,
  live: LiveDeployment | undefined,
  waiting: number,
): DeploymentView {
  const replicas = live?.replicas() ?? [];
  return {
    ...toSettingsView(stored),
    current_min: live?.min ?? stored.spec.min,
    status: toStatus(stored, live),
    reason: live?.reason ?? null,
    running: replicas.reduce((sum, { outstanding }) => sum + outstanding, 0),
    waiting,
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
  };
}

function toStatus(stored: Stored, live: LiveDeployment | undefined): DeploymentView['status'] {
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
