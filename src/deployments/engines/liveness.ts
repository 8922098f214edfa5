// Notices an engine that runs but no longer answers, by a cheap request at an interval.

import type { Clock } from '#lib/clock.ts';

/** What is asked, and with which key. */
export interface HealthTarget {
  readonly url: string;
  readonly key: string | null;
}

/** `suspect`: the last check failed. `dead`: too many failed in a row. */
export type LivenessState = 'alive' | 'suspect' | 'dead';

export interface Liveness {
  /** Starts a check if one is due. Must be called about once a second while the replica is ready. */
  check(replica: object, target: () => HealthTarget): LivenessState;
}

export interface LivenessOptions {
  /** Default 10 seconds. */
  readonly everyMs?: number;
  /** Default 10 seconds. */
  readonly timeoutMs?: number;
  /** Returns false if the engine failed. Default: a GET request. */
  isAlive?(target: HealthTarget, timeoutMs: number): Promise<boolean>;
}

/** Failed checks in a row after which an engine is dead. */
const maxFailures = 3;

interface Record {
  dueAt: number;
  failures: number;
  isChecking: boolean;
}

export function createLiveness(clock: Clock, options: LivenessOptions = {}): Liveness {
  const { everyMs = 10_000, timeoutMs = 10_000, isAlive = answers } = options;
  const records = new WeakMap<object, Record>();

  async function run(record: Record, target: HealthTarget): Promise<void> {
    record.isChecking = true;
    const isWell = await isAlive(target, timeoutMs);
    record.failures = isWell ? 0 : record.failures + 1;
    record.dueAt = clock.now() + everyMs;
    record.isChecking = false;
  }

  return {
    check(replica, target) {
      const record = records.get(replica) ?? {
        dueAt: clock.now() + everyMs,
        failures: 0,
        isChecking: false,
      };
      records.set(replica, record);
      if (!record.isChecking && clock.now() >= record.dueAt) void run(record, target());
      if (record.failures === 0) return 'alive';
      return record.failures < maxFailures ? 'suspect' : 'dead';
    },
  };
}

/** Any response but a failure of the server will do: not every program has a list of models. */
async function answers({ url, key }: HealthTarget, timeoutMs: number): Promise<boolean> {
  try {
    const response = await fetch(url, {
      headers: key === null ? {} : { authorization: `Bearer ${key}` },
      redirect: 'manual',
      signal: AbortSignal.timeout(timeoutMs),
    });
    await response.body?.cancel();
    return response.status < 500;
  } catch {
    return false;
  }
}
