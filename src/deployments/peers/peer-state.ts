// What the server that runs a deployment tells the others about it.

import type { DeploymentView } from '#deployments/ground/schema.ts';
import type { DeployedModel } from '#inference/backends/registry.ts';

export interface PeerState {
  /** Names of the backends that take requests. Empty if requests must wait. */
  readonly replicas: readonly string[];
  /** Context windows of these backends in tokens, by name, as far as they are known. */
  readonly context_windows: Readonly<Record<string, number>>;
  readonly obstacle: string | null;
  readonly ready_by: number | null;
  readonly progress: string | null;
  /** The deployment as people see it; null if it is not known. */
  readonly view: DeploymentView | null;
}

/** `windowOf` returns the context window of a backend; null if it is not known. */
export function toPeerState(
  { backends, hold }: DeployedModel,
  view: DeploymentView,
  windowOf: (backend: string) => number | null,
): PeerState {
  const taking = hold === null ? backends.filter(({ isDraining }) => !isDraining) : [];
  const replicas = taking.map(({ spec }) => spec.name);
  const windows = replicas.flatMap((name) => {
    const window = windowOf(name);
    return window === null ? [] : [[name, window] as const];
  });
  return {
    view,
    replicas,
    context_windows: Object.fromEntries(windows),
    obstacle: hold?.obstacle ?? null,
    ready_by: hold?.readyBy() ?? null,
    progress: hold?.progress() ?? null,
  };
}

/** Throws if the answer is not a state: a server of another version may answer differently, or leave members out. */
export function parsePeerState(answer: Partial<PeerState>): PeerState {
  if (!Array.isArray(answer.replicas)) throw new Error('Its answer is not that of this version.');
  return { ...unknownState, ...answer };
}

/** Nothing is known yet. */
export const unknownState: PeerState = {
  replicas: [],
  context_windows: {},
  obstacle: null,
  ready_by: null,
  progress: null,
  view: null,
};
