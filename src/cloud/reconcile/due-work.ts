// Runs what is due: claims rows and works on them concurrently, with a bound in total and one per host, so
// that a host that hangs leaves room for the others.

import type { Logger } from 'pino';
import type { Hosts } from '#cloud/hosts/hosts.ts';
import { KeyCounts } from '#lib/memory/key-counts.ts';
import type { Claim, Claims, WorkTable } from './claims.ts';

export interface DueWork {
  /** Claims due rows and starts work on them. Resolves with how many were started, before they are done.
   * Concurrent calls share one round, which is repeated once for all of them. */
  start(): Promise<number>;
  /** Starts everything that is due by the clock, and resolves when it is done. */
  settle(): Promise<void>;
  /** Claims nothing more, and resolves when running work is done. */
  stop(): Promise<void>;
}

export interface DueWorkParts {
  claims: Claims;
  hosts: Pick<Hosts, 'reachable'>;
  log: Logger;
  /** How to work on a claimed row of each table. */
  workers: Record<WorkTable, (claim: Claim) => Promise<void>>;
  /** Called when a bound that may have held work back has room again. */
  nudge(): void;
}

const maxInFlight = 64;
const maxInFlightPerHost = 24;
const maxClaimsPerRound = 32;

export function createDueWork({ claims, hosts, log, workers, nudge }: DueWorkParts): DueWork {
  const inFlight = new Set<Promise<void>>();
  const inFlightByHost = new KeyCounts();
  let round: Promise<number> | undefined;
  let repeat = false;
  let stopped = false;

  function start(): Promise<number> {
    if (round !== undefined) {
      repeat = true;
      return round;
    }
    round = runRounds().finally(() => {
      round = undefined;
    });
    return round;
  }

  async function runRounds(): Promise<number> {
    let started = 0;
    do {
      repeat = false;
      started += await startFrom('instances');
      started += await startFrom('filesystems');
    } while (repeat && !stopped);
    return started;
  }

  async function startFrom(table: WorkTable): Promise<number> {
    const room = Math.min(maxClaimsPerRound, maxInFlight - inFlight.size);
    if (room <= 0 || stopped) return 0;
    const free = hosts.reachable().filter((host) => inFlightByHost.get(host) < maxInFlightPerHost);
    const taken = await claims.take(table, room, free);
    for (const claim of taken) run(table, claim);
    if (taken.length === maxClaimsPerRound) repeat = true;
    return taken.length;
  }

  function run(table: WorkTable, claim: Claim): void {
    const host = claim.hostId ?? '';
    inFlightByHost.add(host);
    const running = claims
      .holding(table, claim, () => workers[table](claim))
      .catch((error) => log.error({ err: error, table, id: claim.id }, 'reconciling failed'))
      .finally(() => {
        inFlight.delete(running);
        inFlightByHost.remove(host);
        const wasFull = inFlight.size === maxInFlight - 1;
        if (wasFull || inFlightByHost.get(host) === maxInFlightPerHost - 1) nudge();
      });
    inFlight.add(running);
  }

  return {
    start,
    async settle() {
      while ((await start()) > 0 || inFlight.size > 0) await Promise.all(inFlight);
    },
    async stop() {
      stopped = true;
      await round?.catch((error) => log.error({ err: error }, 'the reconciler failed'));
      await Promise.all(inFlight);
    },
  };
}
