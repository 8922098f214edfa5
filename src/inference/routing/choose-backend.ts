// Chooses the backend of a model for a request: the one that probably has the prompt's prefix in its cache, unless
// it is slow or has more than its share of the load; then the one that will probably be done first.

import type { Backend } from '#inference/backends/backend.ts';
import type { Task } from '#inference/engine.ts';
import type { ChatMessage } from '#inference/schema.ts';
import { slownessOf } from './pace.ts';

/** What keeps a request from a backend, besides the backend's own state. */
export interface Constraints {
  readonly task: Task;
  /** Backends that were tried or can't take the request. */
  readonly exclude: Pick<ReadonlySet<Backend>, 'has'>;
  /** True if the backend is on probation and another request is probing it. */
  isProbed(backend: Backend): boolean;
}

/**
 * `busy`: all usable backends are at their limit now. `none`: no backend can take the request,
 * however long it waits.
 */
export type Choice = Backend | 'busy' | 'none';

/** How far above the average load the preferred backend may be. */
const maxLoadFactor = 1.25;

export function chooseBackend(
  backends: readonly Backend[],
  { task, exclude, isProbed }: Constraints,
): Choice {
  const fastest = backends.length === 1 ? null : findFastest(backends);
  let least: Backend | null = null;
  let leastLoad = Number.POSITIVE_INFINITY;
  let free = 0;
  let usable = 0;
  let outstanding = 0;
  let weights = 0;
  for (const backend of backends) {
    const state = exclude.has(backend) ? 'none' : stateOf(backend, isProbed);
    if (state === 'none') continue;
    usable++;
    outstanding += backend.outstanding;
    weights += backend.weight;
    if (state === 'busy') continue;
    free++;
    const load = nextLoadOf(backend, fastest);
    if (load >= leastLoad) continue;
    leastLoad = load;
    least = backend;
  }
  if (least === null) return usable > 0 ? 'busy' : 'none';
  if (free === 1) return least;
  const preferred = findPreferred(backends, hashPrefix(task), exclude);
  if (preferred === null || stateOf(preferred, isProbed) !== 'free') return least;
  // One that may turn out to be slow takes no request that another could begin.
  if (preferred.pace() === null || slownessOf(preferred.pace(), fastest) > 1)
    return nextLoadOf(preferred, fastest) <= leastLoad ? preferred : least;
  const maxLoad = Math.ceil((maxLoadFactor * outstanding) / weights) + 1;
  return preferred.outstanding / preferred.weight <= maxLoad ? preferred : least;
}

/** The pace of the fastest backend that takes requests; null if none is known. */
export function findFastest(backends: readonly Backend[]): number | null {
  let fastest: number | null = null;
  for (const backend of backends) {
    if (backend.draining || backend.health.state() === 'ejected') continue;
    const pace = backend.pace();
    if (pace !== null && (fastest === null || pace < fastest)) fastest = pace;
  }
  return fastest;
}

/** Whether this one backend takes a request. */
export function tryBackend(backend: Backend, isProbed: Constraints['isProbed']): Choice {
  const state = stateOf(backend, isProbed);
  return state === 'free' ? backend : state;
}

/** True if some request could be sent now. */
export const hasFreeBackend = (
  backends: readonly Backend[],
  isProbed: Constraints['isProbed'],
): boolean => backends.some((backend) => stateOf(backend, isProbed) === 'free');

function stateOf(backend: Backend, isProbed: Constraints['isProbed']): 'free' | 'busy' | 'none' {
  if (backend.draining) return 'none';
  const state = backend.health.state();
  if (state === 'ejected') return 'none';
  if (state === 'probation' && isProbed(backend)) return 'busy';
  const { concurrency } = backend;
  return concurrency !== null && backend.outstanding >= concurrency ? 'busy' : 'free';
}

/** The load with one more request, in requests of the fastest backend. */
const nextLoadOf = (backend: Backend, fastest: number | null) =>
  ((backend.outstanding + 1) / backend.weight) * slownessOf(backend.pace(), fastest);

/** Includes busy backends: another one would be preferred only while they are busy, and then lose its cache. */
function findPreferred(
  backends: readonly Backend[],
  prefix: number,
  exclude: Pick<ReadonlySet<Backend>, 'has'>,
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

/** Characters of each leading message that are hashed. Prompts that differ later can still share a cache. */
const prefixLength = 256;
const prefixTokens = 256;
const seed = 0x811c9dc5;

/** Hashes the id of the conversation, or the messages up to the first user message, which all its turns share. */
export function hashPrefix(task: Task): number {
  if (task.kind === 'completion') return hashPrompt(task.body.prompt);
  if (task.conversation !== undefined) return hashText(task.conversation, seed);
  let hash = seed;
  for (const message of task.body.messages) {
    hash = hashText(toLeadingText(message), hash);
    if (message.role === 'user') break;
  }
  return hash;
}

/**
 * Rendezvous hashing: the backend with the highest affinity is preferred, so that a backend that comes or goes moves
 * only its own share of prefixes. Weighted, so that each backend's share is proportional to its weight.
 */
export function affinityOf(prefix: number, { id, weight }: Backend): number {
  const uniform = (mix(hashText(id, prefix)) + 0.5) / 2 ** 32;
  return -weight / Math.log(uniform);
}

function toLeadingText({ content }: ChatMessage): string {
  if (content == null) return '';
  if (typeof content === 'string') return content;
  return content[0]?.text ?? '';
}

function hashPrompt(prompt: string | readonly (string | number | readonly number[])[]): number {
  if (typeof prompt === 'string') return hashText(prompt, seed);
  const [first] = prompt;
  if (typeof first === 'string') return hashText(first, seed);
  const tokens = typeof first === 'number' ? (prompt as readonly number[]) : (first ?? []);
  let hash = seed;
  for (let at = 0; at < tokens.length && at < prefixTokens; at++) {
    hash = Math.imul(hash ^ (tokens[at] ?? 0), 0x01000193);
  }
  return hash;
}

/** FNV-1a over UTF-16 units. */
function hashText(text: string, from: number): number {
  const length = Math.min(text.length, prefixLength);
  let hash = from;
  for (let at = 0; at < length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  return hash;
}

/** FNV's high bits hardly depend on the last characters, which is where ids differ. */
function mix(hash: number): number {
  let mixed = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return (mixed ^ (mixed >>> 16)) >>> 0;
}
