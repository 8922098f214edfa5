// Whether the server can serve requests, and if not, why. What a load balancer asks.

import { sql } from 'kysely';
import type { DatabaseHealth } from '#db/health.ts';
import type { Database } from '#db/tables/tables.ts';
import { withTimeout } from '#lib/async/with-timeout.ts';
import type { DiskSpace } from '#lib/computer/disk-space.ts';

export interface ReadinessParts {
  db: Database;
  health: DatabaseHealth;
  /** How long known API keys work while the database does not answer. */
  outageMs: number;
  disk: DiskSpace;
}

export interface Readiness {
  readonly status: 'ok' | 'disk full' | 'database unavailable';
  readonly isReady: boolean;
}

/** A database that takes longer counts as unavailable. Longer than it takes to notice an outage. */
const answerMs = 5000;

export async function checkReadiness(parts: ReadinessParts): Promise<Readiness> {
  const { db, health, outageMs, disk } = parts;
  if (await disk.isFull()) return { status: 'disk full', isReady: false };
  try {
    await withTimeout(sql`select 1`.execute(db), answerMs);
    return { status: 'ok', isReady: true };
  } catch {
    // A load balancer that took every server out would turn the database's outage into one of the API.
    const isReady = health.downMs !== null && health.downMs < outageMs;
    return { status: 'database unavailable', isReady };
  }
}
