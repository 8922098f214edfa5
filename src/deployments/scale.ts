// Decides how many replicas a deployment has: which to start and which to drain. Pure: it sees the replicas, the
// requests and the time, and returns actions. It adds replicas at once and removes them slowly.

/** How many replicas a deployment may have, and what they are for. */
export interface Scaling {
  readonly min: number;
  readonly max: number;
  /** Running requests per replica to aim for. */
  readonly target: number;
  /** How long there must be more replicas than needed before one is removed. */
  readonly idleMs: number;
}

export interface ReplicaFacts {
  readonly id: string;
  /** The revision of the deployment that it runs. */
  readonly revision: number;
  /** `starting`: not ready yet. `draining`: takes no new requests, and stops once the running ones have ended. */
  readonly state: 'starting' | 'ready' | 'draining';
  readonly outstanding: number;
  readonly startedAt: number;
  /** Null until it is ready. */
  readonly readyAt: number | null;
}

export interface Situation {
  readonly revision: number;
  /** True if the revision failed to start too often. Nothing is started, and replicas of older revisions stay. */
  readonly hasFailed: boolean;
  /** True if the deployment is stopped or being removed. */
  readonly isStopped: boolean;
  readonly running: number;
  readonly waiting: number;
  readonly replicas: readonly ReplicaFacts[];
  /** Since when there are more replicas than needed; null if there are not. */
  readonly surplusSince: number | null;
  readonly now: number;
}

export interface Decision {
  /** How many replicas to start. */
  readonly start: number;
  /** Ids of replicas to drain. */
  readonly drain: readonly string[];
  readonly surplusSince: number | null;
}

/** The number of replicas that the requests need. */
export function toDesired({ min, max, target }: Scaling, requests: number): number {
  return Math.min(max, Math.max(min, Math.ceil(requests / target)));
}

export function decide(scaling: Scaling, situation: Situation): Decision {
  const { revision, replicas, now } = situation;
  const live = replicas.filter(({ state }) => state !== 'draining');
  if (situation.isStopped) return { start: 0, drain: live.map(toId), surplusSince: null };
  const current = live.filter((one) => one.revision === revision);
  const older = live.filter((one) => one.revision !== revision);
  const desired = toDesired(scaling, situation.running + situation.waiting);
  const replaced = findReplaced(current, older, desired);
  if (current.length < desired) {
    const start = situation.hasFailed ? 0 : toRoom(scaling, replicas, revision, current, desired);
    return { start, drain: replaced, surplusSince: null };
  }
  const since = current.length > desired ? (situation.surplusSince ?? now) : null;
  const surplus =
    since !== null && now - since >= scaling.idleMs ? findSurplus(current, now) : null;
  if (surplus === null) return { start: 0, drain: replaced, surplusSince: since };
  // One at a time: the next one has to be idle for as long again.
  return { start: 0, drain: [...replaced, surplus.id], surplusSince: now };
}

/** How many to start: draining replicas still use memory, so they count against the maximum. */
function toRoom(
  { max }: Scaling,
  replicas: readonly ReplicaFacts[],
  revision: number,
  current: readonly ReplicaFacts[],
  desired: number,
): number {
  // The first replica of a new revision starts beside the old ones, which are drained once it is ready.
  const isUpdate = current.length === 0 && replicas.some((one) => one.revision !== revision);
  const room = Math.max(max - replicas.length, isUpdate ? 1 : 0);
  const isUpdating = isUpdate && replicas.length > max;
  return isUpdating ? 0 : Math.min(desired - current.length, room);
}

/** Older replicas are drained as newer ones become ready, or at once if none are needed. */
function findReplaced(
  current: readonly ReplicaFacts[],
  older: readonly ReplicaFacts[],
  desired: number,
): string[] {
  const ready = current.filter(({ state }) => state === 'ready').length;
  if (ready === 0 && desired > 0) return [];
  const kept = Math.max(0, desired - ready);
  return older
    .toSorted((one, other) => other.outstanding - one.outstanding)
    .slice(kept)
    .map(toId);
}

/**
 * The replica to remove: the one with the fewest requests. A replica that is starting stays, and so does one that became
 * ready more recently than its start took: otherwise it would have been started for nothing.
 */
function findSurplus(current: readonly ReplicaFacts[], now: number): ReplicaFacts | null {
  const removable = current.filter(
    ({ readyAt, startedAt }) => readyAt !== null && now - readyAt >= readyAt - startedAt,
  );
  return removable.toSorted((one, other) => one.outstanding - other.outstanding)[0] ?? null;
}

const toId = ({ id }: ReplicaFacts) => id;
