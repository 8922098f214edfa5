// What requests demand of deployments. Those of a model are divided among its deployments, so that together they start the
// replicas that are needed and no more. Pure.

/** What one deployment has and may start. */
export interface Share {
  readonly name: string;
  readonly weight: number;
  /** Running requests per replica to aim for. */
  readonly target: number;
  /** Replicas that run or start, and those of its minimum. */
  readonly replicas: number;
  /** Replicas that wait for a machine, besides those. */
  readonly queued: number;
  /** How many replicas it may have now. */
  readonly max: number;
  /** Running requests. */
  readonly running: number;
}

/**
 * Returns for each deployment how many requests it must find room for, besides those that it runs: a part of those that
 * wait, and of those that the other deployments run beyond their maximum. They go to replicas that exist. The next
 * replica is started where there are the fewest for the weight. Replicas that wait for a machine come last.
 */
export function divideDemand(
  waiting: number,
  shares: readonly Share[],
): ReadonlyMap<string, number> {
  const parts = shares
    .map((share) => ({ ...share, given: 0 }))
    .toSorted((one, other) => (one.name < other.name ? -1 : 1));
  let left = shares.reduce(
    (sum, { running, max, target }) => sum + Math.max(0, running - max * target),
    waiting,
  );
  const fill = (part: (typeof parts)[number]) => {
    const room = part.replicas * part.target - part.running - part.given;
    const taken = Math.min(left, Math.max(0, room));
    part.given += taken;
    left -= taken;
  };
  parts.forEach(fill);
  while (left > 0) {
    const [next] = parts
      .filter(({ replicas, max }) => replicas < max)
      .toSorted((one, other) => fullness(one) - fullness(other));
    if (next === undefined) break;
    next.replicas += 1;
    fill(next);
  }
  for (const part of parts) {
    const taken = Math.min(left, part.queued * part.target);
    part.given += taken;
    left -= taken;
  }
  return new Map(parts.map(({ name, given }) => [name, given]));
}

/** The same for the deployments of all models. `waiting` returns how many requests wait for a model. By name. */
export function divideAll(
  deployments: readonly { readonly model: string; toShare(): Share | null }[],
  waiting: (model: string) => number,
): ReadonlyMap<string, number> {
  const byModel = Map.groupBy(deployments, ({ model }) => model);
  return new Map(
    [...byModel].flatMap(([model, all]) => {
      const shares = all.flatMap((one) => one.toShare() ?? []);
      return [...divideDemand(waiting(model), shares)];
    }),
  );
}

/** Replicas for the weight, if another one were started. */
const fullness = ({ replicas, weight }: Share) => (replicas + 1) / weight;

/**
 * Compares how many requests each replica had been given at two moments. The count of a replica that rested begins anew.
 */
export const hasNewRequests = (
  before: ReadonlyMap<string, number>,
  after: ReadonlyMap<string, number>,
): boolean => [...after].some(([id, count]) => count > 0 && count !== (before.get(id) ?? 0));
