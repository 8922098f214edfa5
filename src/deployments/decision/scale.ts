// Decides how many replicas a deployment has: which to start, wake, drain and let rest. Pure: it sees the replicas, the
// requests and the time, and returns actions. It adds replicas at once, and takes them down the ladder slowly.

import {
  isResting,
  type Ladder,
  type Resting,
  toFirstStepMs,
  toStep,
} from '#deployments/ground/ladder.ts';

/** How many replicas a deployment may have, and what they are for. */
export interface Scaling {
  readonly min: number;
  readonly max: number;
  /** Running requests per replica to aim for. */
  readonly target: number;
  /** How long there must be more replicas than needed before one takes each step down. */
  readonly ladder: Ladder;
}

export interface ReplicaFacts {
  readonly id: string;
  /** The revision of the deployment that it runs. */
  readonly revision: number;
  /**
   * `starting`: not ready yet, or waking. `draining`: takes no new requests, and rests or stops once the running ones
   * have ended. `stopping`: its process is ending.
   */
  readonly state: 'starting' | 'ready' | 'draining' | 'stopping' | Resting;
  /** True while it waits for a free machine: nothing was started for it. */
  readonly isWaiting: boolean;
  readonly outstanding: number;
  readonly startedAt: number;
  /** When its engine was started, or woken. The time before, such as that for fetching weights, is not counted as loading. */
  readonly loadingSince: number;
  /** Null until it is ready, and while it wakes. */
  readonly readyAt: number | null;
  /** Since when it was not needed; null unless it rests. */
  readonly idleSince: number | null;
}

export interface Situation {
  readonly revision: number;
  /** True if the revision failed to start too often. Nothing is started, and replicas of older revisions stay. */
  readonly hasFailed: boolean;
  /** True if the deployment is stopped or being removed. */
  readonly isStopped: boolean;
  /** At least 1 if a request has run since the last decision. */
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
  /** Ids of resting replicas that are needed again. */
  readonly wake: readonly string[];
  /** Ids of replicas to drain and remove. Resting ones have nothing to drain, and some may be draining already. */
  readonly drain: readonly string[];
  /** Ids of replicas to drain, which then take the step of the ladder that is due. */
  readonly rest: readonly string[];
  /** Ids of sleeping replicas whose engine must end. */
  readonly stop: readonly string[];
  readonly surplusSince: number | null;
}

/** The number of replicas that the requests need. */
export function toDesired({ min, max, target }: Scaling, requests: number): number {
  return Math.min(max, Math.max(min, Math.ceil(requests / target)));
}

export function decide(scaling: Scaling, situation: Situation): Decision {
  const { revision, replicas, now } = situation;
  const live = replicas.filter(isLive);
  const resting = replicas.filter(({ state }) => isResting(state));
  const none = { start: 0, resume: [], wake: [], rest: [], stop: [], surplusSince: null };
  if (situation.isStopped)
    return { ...none, drain: replicas.filter(({ state }) => state !== 'stopping').map(toId) };
  const current = live.filter((one) => one.revision === revision);
  const desired = toDesired(scaling, situation.running + situation.waiting);
  const resume = findDraining(situation).slice(0, Math.max(0, desired - current.length));
  const missing = Math.max(0, desired - current.length - resume.length);
  const wake = situation.hasFailed ? [] : findWakeable(situation).slice(0, missing);
  const start = situation.hasFailed
    ? 0
    : Math.min(missing - wake.length, toRoom(scaling, situation));
  const tooMany = findTooMany(scaling, situation, current, desired);
  const { gone, stopped: stop } = lower(
    scaling.ladder,
    resting.filter(({ id }) => !wake.includes(id) && !tooMany.includes(id)),
    situation,
  );
  const drain = [...findReplaced(scaling, situation, current, desired), ...gone, ...tooMany];
  const added = { ...none, start, resume, wake, drain, stop };
  const kept = current.filter(({ id }) => !tooMany.includes(id));
  if (kept.length <= desired) return added;
  const since = situation.surplusSince ?? now;
  const isDue = now - since >= toFirstStepMs(scaling.ladder);
  const surplus = isDue ? findSurplus(kept, now) : null;
  if (surplus === null) return { ...added, surplusSince: since };
  // One at a time: the next one has to be idle for as long again.
  return { ...added, rest: [surplus.id], surplusSince: now };
}

/**
 * Replicas that are removed whatever the ladder says: those above the maximum, which may have been lowered, resting ones
 * first, and those that are not needed and still wait for a machine.
 */
function findTooMany(
  { max }: Scaling,
  situation: Situation,
  current: readonly ReplicaFacts[],
  desired: number,
): string[] {
  const resting = findWakeable(situation).slice(Math.max(0, max - current.length));
  const unneeded = current
    .filter(({ isWaiting }) => isWaiting)
    .slice(0, Math.max(0, current.length - desired));
  const others = current
    .filter((one) => !unneeded.includes(one))
    .toSorted((one, other) => one.outstanding - other.outstanding);
  const aboveMax = others.slice(0, Math.max(0, others.length - max));
  return [...resting, ...unneeded.map(toId), ...aboveMax.map(toId)];
}

const isLive = ({ state }: ReplicaFacts) => state === 'starting' || state === 'ready';

/** Sleeping ones first, because they wake sooner. Of those, the ones that rest for the shortest time. */
const findWakeable = ({ replicas, revision }: Situation) =>
  replicas
    .filter((one) => one.revision === revision && isResting(one.state))
    .toSorted(
      (one, other) =>
        Number(one.state === 'stopped') - Number(other.state === 'stopped') ||
        (other.idleSince ?? 0) - (one.idleSince ?? 0),
    )
    .map(toId);

/** Resting replicas that take their next step. Those of an older revision will never be needed. */
function lower(
  ladder: Ladder,
  resting: readonly ReplicaFacts[],
  { revision, now }: Situation,
): { gone: string[]; stopped: string[] } {
  const due = resting.map((one) => ({
    ...one,
    step: one.revision === revision ? toStep(ladder, now - (one.idleSince ?? now)) : 'gone',
  }));
  return {
    gone: due.filter(({ step }) => step === 'gone').map(toId),
    stopped: due.filter(({ step, state }) => step === 'stopped' && state === 'asleep').map(toId),
  };
}

const findDraining = ({ replicas, revision }: Situation) =>
  replicas.filter((one) => one.revision === revision && one.state === 'draining').map(toId);

/**
 * How many may start. Replicas that drain, rest or stop still use memory, so they count against the maximum. Those of a new
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
  const older = replicas.filter(
    (one) => one.revision !== revision && (isLive(one) || one.state === 'draining'),
  );
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
 * ready more recently than it loaded: otherwise it would have been started for nothing.
 */
function findSurplus(current: readonly ReplicaFacts[], now: number): ReplicaFacts | null {
  const removable = current.filter(
    ({ readyAt, loadingSince }) => readyAt !== null && now - readyAt >= readyAt - loadingSince,
  );
  return removable.toSorted((one, other) => one.outstanding - other.outstanding)[0] ?? null;
}

const toId = ({ id }: { readonly id: string }) => id;
