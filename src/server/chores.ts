// Periodic background work. A chore that fails is logged and runs again at its next interval.

import { repeat } from '#lib/async/repeat.ts';
import { isSingleServer } from '#server/options/single-server.ts';
import type { Parts } from '#server/parts/parts.ts';

/** Starts all chores. Returns a function that stops them. */
export function startChores({
  core,
  accounts,
  usage,
  models,
  serving,
  batches,
  liveDeployments,
  cloud,
}: Parts): () => void {
  const { log, clock } = core;

  const every = (ms: number, chore: () => Promise<void>) =>
    repeat(clock, ms, () => {
      chore().catch((error) => log.error({ err: error }, 'background work failed'));
    });

  // Hosts over the network are probed often. A single server knows its own host.
  let sinceRefresh = 0;
  const refreshHosts = async () => {
    const { hosts, ownHostId } = cloud;
    const hasOwnOnly =
      isSingleServer(core.config) && hosts.all().every(({ row }) => row.id === ownHostId);
    sinceRefresh += 1;
    if (hasOwnOnly && sinceRefresh < 3) return;
    sinceRefresh = 0;
    await hosts.refresh();
  };

  const ends = [
    every(1_000, () => models.backends.tick()),
    every(1_000, () => accounts.running.check()),
    every(1_000, () => usage.drainSpool()),
    every(1_000, async () => liveDeployments.tick()),
    every(2_000, refreshHosts),
    every(5_000, () => models.backends.live.refresh()),
    every(5_000, () => models.weights.tidy()),
    every(5_000, () => liveDeployments.refresh()),
    every(5_000, () => accounts.apiKeys.flushLastUsed()),
    every(60_000, () => cloud.orphans.sweep()),
    every(60_000, () => usage.rows.sweep()),
    every(60_000, () => batches.files.sweep()),
    every(600_000, () => batches.rows.sweep()),
    every(600_000, () => accounts.throttle.sweep()),
    every(3_600_000, () => accounts.sessions.sweep()),
    every(3_600_000, () => liveDeployments.sweep()),
    every(600_000, () => usage.retention.sweep()),
    every(600_000, () => serving.responses.sweep()),
  ];
  return () => {
    for (const end of ends) end();
  };
}
