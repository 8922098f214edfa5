// How the starts of a deployment failed: how often in a row, why the last one did, and when the next one may begin.

import type { Failure } from '#deployments/engines/engine.ts';

/** After this many failed starts in a row, nothing is started until the settings change. */
const maxFailures = 3;
/** Time before the next start after a failure. It doubles each time. */
const retryMs = 250;
/** A replica that ran this long was started well. */
const soundMs = 60_000;

interface FailedReplica {
  readonly startedAt: number;
  /** Null if it never was ready. */
  readonly readyAt: number | null;
  log(): readonly string[];
}

export class Failures {
  #inARow = 0;
  /** When the last failure that counts was noted. */
  #at = Number.NEGATIVE_INFINITY;
  /** The last one; null if there was none. */
  last: Failure | null = null;
  /** The log of the last replica that failed. */
  log: readonly string[] = [];
  /** Replicas that failed since this server started. */
  total = 0;

  /** True if nothing is started any more. */
  get arePermanent(): boolean {
    return this.#inARow >= maxFailures;
  }

  /** The number of the next start since the last sound one. */
  get nextAttempt(): number {
    return this.#inARow + 1;
  }

  mayStart(now: number): boolean {
    return !this.arePermanent && now >= this.#at + retryMs * 2 ** this.#inARow;
  }

  add(now: number, replica: FailedReplica, failure: Failure): void {
    this.total += 1;
    this.last = failure;
    this.log = replica.log();
    const wasSound = isSound(now, replica);
    // Replicas that start together fail together, for example if their weights can't be fetched. That counts once.
    if (!wasSound && !failure.isPermanent && replica.startedAt <= this.#at) return;
    const count = wasSound ? 1 : this.#inARow + 1;
    this.#inARow = failure.isPermanent ? maxFailures : count;
    this.#at = now;
  }

  /** Forgets them once one of the replicas runs well. */
  forgetIfSound(now: number, replicas: readonly FailedReplica[]): void {
    if (now - this.#at >= soundMs && replicas.some((one) => isSound(now, one))) this.reset();
  }

  reset(): void {
    this.#inARow = 0;
    this.#at = Number.NEGATIVE_INFINITY;
    this.last = null;
    this.log = [];
  }
}

const isSound = (now: number, { readyAt }: FailedReplica) =>
  readyAt !== null && now - readyAt >= soundMs;
