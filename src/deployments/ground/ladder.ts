// The steps that a replica takes down while it is not needed. Pure.

export const steps = ['asleep', 'stopped', 'gone'] as const;

/**
 * `asleep`: the engine has given its memory back, and its process stays. `stopped`: the engine has ended, and its machine
 * stays. `gone`: nothing is left.
 */
export type Step = (typeof steps)[number];

/** The steps from which a replica comes back. */
export type Resting = Exclude<Step, 'gone'>;

export interface Rest {
  readonly step: Resting;
  /** Since when the replica was not needed. */
  readonly idleSince: number;
}

export const isResting = (state: string): state is Resting =>
  state === 'asleep' || state === 'stopped';

/** Seconds of idleness before each step; null if it is left out. */
export type Ladder = { readonly [Name in Step]: number | null };

/** The lowest step that is due after this time; null if none is. */
export const toStep = (ladder: Ladder, idleMs: number): Step | null =>
  steps.findLast((step) => idleMs >= toMs(ladder[step])) ?? null;

/** Infinite if there is no step. */
export const toFirstStepMs = (ladder: Ladder): number =>
  Math.min(...steps.map((step) => toMs(ladder[step])));

const toMs = (seconds: number | null) =>
  seconds === null ? Number.POSITIVE_INFINITY : seconds * 1_000;
