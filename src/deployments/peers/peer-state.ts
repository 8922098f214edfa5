// What the server that runs a deployment tells the others about it.

import type { Hold } from '#inference/backends/backend.ts';
import { type Static, Type } from '#lib/schema/schema-builder.ts';

export const PeerState = Type.Object({
  /** A replica takes requests. */
  is_ready: Type.Boolean(),
  obstacle: Type.Union([Type.String(), Type.Null()]),
  ready_by: Type.Union([Type.Integer(), Type.Null()]),
  progress: Type.Union([Type.String(), Type.Null()]),
});
export type PeerState = Static<typeof PeerState>;

/** `hold` is null if a replica takes requests. */
export const toPeerState = (hold: Hold | null): PeerState => ({
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
};
