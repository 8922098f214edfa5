// Who of a model's backends takes a request: the one that likely has its prefix in the cache, unless that
// one has more than its share to do; then the one with the least outstanding work.

import type { Backend } from '#inference/backends/backend.ts';
import type { Task } from '#inference/engine.ts';
import { affinityOf, hashPrefix } from './affinity.ts';

/** What keeps a request from a backend besides the backend's own state. */
export interface Constraints {
  task: Task;
  /** Tried before, or unable to. */
  exclude: ReadonlySet<Backend>;
  /** On probation and being tried by another request. */
  isProbed(backend: Backend): boolean;
}

/** `busy`: there are some, but none has a place now. `none`: nobody could take it, whatever it waits. */
export type Choice = Backend | 'busy' | 'none';

/** How much above the average the preferred backend may be loaded. */
const loadFactor = 1.25;

const nobody: ReadonlySet<Backend> = new Set();

export function chooseBackend(
  backends: readonly Backend[],
  { task, exclude, isProbed }: Constraints,
): Choice {
  let least: Backend | null = null;
  let free = 0;
  let present = 0;
  let outstanding = 0;
  let weights = 0;
  for (const backend of backends) {
    const place = placeOf(backend, exclude, isProbed);
    if (place === 'none') continue;
    present++;
    outstanding += backend.outstanding;
    weights += backend.weight;
    if (place === 'busy') continue;
    free++;
    if (least === null || loadOf(backend) < loadOf(least)) least = backend;
  }
  if (least === null) return present > 0 ? 'busy' : 'none';
  if (free === 1) return least;
  const preferred = findPreferred(backends, hashPrefix(task), exclude);
  const bound = Math.ceil((loadFactor * outstanding) / weights) + 1;
  const isWelcome = preferred !== null && loadOf(preferred) <= bound;
  return isWelcome && placeOf(preferred, exclude, isProbed) === 'free' ? preferred : least;
}

/** Whether anybody could be sent somewhere now. */
export function hasPlace(backends: readonly Backend[], isProbed: Constraints['isProbed']): boolean {
  return backends.some((backend) => placeOf(backend, nobody, isProbed) === 'free');
}

function placeOf(
  backend: Backend,
  exclude: ReadonlySet<Backend>,
  isProbed: Constraints['isProbed'],
): 'free' | 'busy' | 'none' {
  if (backend.draining || exclude.has(backend)) return 'none';
  const state = backend.health.state();
  if (state === 'ejected') return 'none';
  if (state === 'probation' && isProbed(backend)) return 'busy';
  const { concurrency } = backend;
  return concurrency !== null && backend.outstanding >= concurrency ? 'busy' : 'free';
}

const loadOf = ({ outstanding, weight }: Backend) => outstanding / weight;

/** Also one that has no place now: another would only seem preferred while that lasts. */
function findPreferred(
  backends: readonly Backend[],
  prefix: number,
  exclude: ReadonlySet<Backend>,
): Backend | null {
  let preferred: Backend | null = null;
  let highest = Number.NEGATIVE_INFINITY;
  for (const backend of backends) {
    if (backend.draining || exclude.has(backend) || backend.health.state() === 'ejected') continue;
    const affinity = affinityOf(prefix, backend);
    if (affinity <= highest) continue;
    highest = affinity;
    preferred = backend;
  }
  return preferred;
}
