// What the server that runs a deployment tells the others about it.

import type { DeploymentView } from '#deployments/schema.ts';
import type { DeployedModel } from '#inference/backends/registry.ts';

export interface PeerState {
  /** Names of the backends that take requests. Empty if requests must wait. */
  readonly replicas: readonly string[];
  readonly obstacle: string | null;
  readonly ready_by: number | null;
  readonly progress: string | null;
  /** The deployment as people see it; null if it is not known. */
  readonly view: DeploymentView | null;
}

export const toPeerState = (
  { backends, hold }: DeployedModel,
  view: DeploymentView,
): PeerState => ({
  view,
  replicas:
    hold === null
      ? backends.filter(({ isDraining }) => !isDraining).map(({ spec }) => spec.name)
      : [],
  obstacle: hold?.obstacle ?? null,
  ready_by: hold?.readyBy ?? null,
  progress: hold?.progress() ?? null,
});

/** Throws if the answer is not a state: a server of another version may answer differently. */
export function parsePeerState(answer: Partial<PeerState>): PeerState {
  if (!Array.isArray(answer.replicas)) throw new Error('Its answer is not that of this version.');
  return answer as PeerState;
}

/** Nothing is known yet. */
export const unknownState: PeerState = {
  replicas: [],
  obstacle: null,
  ready_by: null,
  progress: null,
  view: null,
};
