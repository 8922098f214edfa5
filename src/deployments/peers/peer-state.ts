// What the server that runs a deployment tells the others about it.

import type { DeploymentView } from '#deployments/schema.ts';
import type { Hold } from '#inference/backends/backend.ts';

export interface PeerState {
  /** A replica takes requests. */
  readonly is_ready: boolean;
  readonly obstacle: string | null;
  readonly ready_by: number | null;
  readonly progress: string | null;
  /** The deployment as people see it; null if it is not known. */
  readonly view: DeploymentView | null;
}

/** `hold` is null if a replica takes requests. */
export const toPeerState = (hold: Hold | null, view: DeploymentView): PeerState => ({
  view,
  is_ready: hold === null,
  obstacle: hold?.obstacle ?? null,
  ready_by: hold?.readyBy ?? null,
  progress: hold?.progress() ?? null,
});

/** Nothing is known yet. */
export const unknownState: PeerState = {
  is_ready: false,
  obstacle: null,
  ready_by: null,
  progress: null,
  view: null,
};
