// Weights for engines that run by themselves: those on disk, or else fetched by a pull. All that need the same weights
// wait for one pull, which survives this process.

import { chmod } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import type { WeightPullRow } from '#db/tables.ts';
import type { Source } from './choose.ts';
import { goneFromDisk, pullCancelled } from './errors.ts';
import type { PullRows } from './pull-rows.ts';
import type { Pulls } from './pulls.ts';
import type { Runner } from './runner.ts';
import { type Format, findStored } from './selection.ts';
import type { Store, Weights } from './store.ts';

export interface FetchOrder {
  readonly accountId: string;
  readonly source: Source;
  readonly format: Format;
  /** For the hub, if the server has no token of its own. */
  readonly token: string | null;
}

export interface FetchWatch {
  /** Called with what is done now, such as `fetching weights 43 %`. */
  report(progress: string): void;
  /** Ends the wait, but not the pull. */
  readonly signal: AbortSignal;
}

export interface FetchParts {
  readonly store: Store;
  readonly pulls: Pulls;
  readonly rows: PullRows;
  readonly runner: Runner;
}

export interface Fetches {
  /** Resolves with whole weights. Rejects with a sentence if they can't be fetched. */
  provide(order: FetchOrder, watch: FetchWatch): Promise<Weights>;
}

const lookEveryMs = 300;

export function createFetches({ store, pulls, rows, runner }: FetchParts): Fetches {
  const find = async ({ source, format }: FetchOrder) =>
    findStored(source, format, await store.list());

  async function fetch(order: FetchOrder, watch: FetchWatch): Promise<Weights> {
    watch.report('looking for weights on the hub');
    const { accountId, ...wanted } = order;
    const pull = await pulls.createFor(accountId, { ...wanted, signal: watch.signal });
    try {
      await waitFor(pull, watch);
    } finally {
      runner.setToken(pull.id, null);
    }
    const weights = await find(order);
    if (weights === undefined) throw goneFromDisk(pull.name);
    return weights;
  }

  async function waitFor({ id, name }: WeightPullRow, { report, signal }: FetchWatch) {
    for (;;) {
      const row = await rows.get(id);
      if (row === undefined || row.state === 'cancelled') throw pullCancelled(name);
      if (row.state === 'failed') throw new Error(row.error ?? '');
      if (row.state === 'done') return;
      report(toProgress(row, runner.bytesOf(id) ?? row.bytes_done));
      await sleep(lookEveryMs, undefined, { signal });
    }
  }

  return {
    async provide(order, watch) {
      const weights = (await find(order)) ?? (await fetch(order, watch));
      // Machines read them as another user. The folder of the store keeps other users of this computer out.
      for (const { target } of weights.files) await chmod(target, 0o644);
      return weights;
    },
  };
}

const toProgress = ({ state, bytes_total: total }: WeightPullRow, done: number) =>
  state === 'queued'
    ? 'waiting to fetch weights'
    : `fetching weights ${Math.floor((100 * done) / Math.max(1, total))} %`;
