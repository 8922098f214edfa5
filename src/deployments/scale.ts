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
  /**
   * `starting`: not ready yet. `draining`: takes no new requests, and stops once the running ones have ended.
   * `stopping`: its process is ending.
   */
  readonly state: 'starting' | 'ready' | 'draining' | 'stopping';
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
  /** Ids of draining replicas that take requests again. */
  readonly resume: readonly string[];
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
  const live = replicas.filter(isLive);
  const none = { start: 0, resume: [], surplusSince: null };
  if (situation.isStopped) return { ...none, drain: live.map(toId) };
  const current = live.filter((one) => one.revision === revision);
  const desired = toDesired(scaling, situation.running + situation.waiting);
  const drain = findReplaced(scaling, situation, current, desired);
  if (current.length < desired) {
    const resume = findDraining(situation).slice(0, desired - current.length);
    const missing = desired - current.length - resume.length;
    const start = situation.hasFailed ? 0 : Math.min(missing, toRoom(scaling, situation));
    return { ...none, start, resume, drain };
  }
  const since = current.length > desired ? (situation.surplusSince ?? now) : null;
  const surplus =
    since !== null && now - since >= scaling.idleMs ? findSurplus(current, now) : null;
  if (surplus === null) return { ...none, drain, surplusSince: since };
  // One at a time: the next one has to be idle for as long again.
  return { ...none, drain: [...drain, surplus.id], surplusSince: now };
}

const isLive = ({ state }: ReplicaFacts) => state === 'starting' || state === 'ready';

const findDraining = ({ replicas, revision }: Situation) =>
  replicas.filter((one) => one.revision === revision && one.state === 'draining').map(toId);

/**
 * How many may start. Replicas that drain or stop still use memory, so they count against the maximum. Those of a new
 * revision start one by one beside the old ones, which are drained as they become ready.
 */
function toRoom({ max }: Scaling, { replicas, revision }: Situation): number {
  const isUpdate = replicas.some((one) => one.revision !== revision && one.state === 'ready');
  return Math.max(0, (isUpdate ? max + 1 : max) - replicas.length);
}

/**
 * Replicas of older revisions are drained as newer ones become ready, or at once if none are needed. One that is still
 * starting will never be needed.
 */
function findReplaced(
  { max }: Scaling,
  { replicas, revision }: Situation,
  current: readonly ReplicaFacts[],
  desired: number,
): string[] {
  const older = replicas.filter((one) => one.revision !== revision && isLive(one));
  const ready = current.filter(({ state }) => state === 'ready').length;
  const kept = ready === 0 && desired > 0 ? max : Math.max(0, desired - ready);
  const serving = older
    .filter(({ state }) => state === 'ready')
    .toSorted((one, other) => other.outstanding - one.outstanding)
    .slice(0, kept);
  return older.filter((one) => !serving.includes(one)).map(toId);
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
