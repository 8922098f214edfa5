// Weights for engines that run by themselves: those on disk, or else fetched by a pull. All that need the same weights
// wait for one pull, which survives this process.

import { chmod } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Source } from './choose.ts';
import { goneFromDisk } from './errors.ts';
import type { PullRow, PullRows } from './pull-rows.ts';
import type { Pulls } from './pulls.ts';
import type { Runner } from './runner.ts';
import { type Format, findStored } from './selection.ts';
import type { Store, Weights } from './store.ts';
import { TransferEstimate } from './transfer-estimate.ts';

export interface FetchOrder {
  readonly accountId: string;
  readonly source: Source;
  readonly format: Format;
  /** For the hub, if the server has no token of its own. */
  readonly token: string | null;
}

export interface FetchWatch {
  /** Called with what is done now, such as `fetching weights 43 %`, and how long it will probably take. */
  report(progress: string, stage?: { readonly leftMs: number }): void;
  /** Ends the wait. The pull goes on as long as a deployment names its weights. */
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
    for (;;) {
      const pull = await pulls.createFor(accountId, { ...wanted, signal: watch.signal });
      // A deployment that still waits needs a new pull in place of one that was cancelled.
      if (!(await isDone(pull, watch))) continue;
      const weights = await find(order);
      if (weights === undefined) throw goneFromDisk(pull.name);
      return weights;
    }
  }

  /** Waits for the end of the pull. Returns false if it was cancelled. */
  async function isDone({ id }: PullRow, { report, signal }: FetchWatch): Promise<boolean> {
    const estimate = new TransferEstimate();
    for (;;) {
      const row = await rows.get(id);
      signal.throwIfAborted();
      if (row === undefined || row.state === 'cancelled') return false;
      if (row.state === 'failed') throw new Error(row.error ?? '');
      if (row.state === 'done') return true;
      const done = runner.bytesOf(id) ?? row.bytes_done;
      const leftMs = estimate.leftMs(performance.now(), done, row.bytes_total);
      report(toProgress(row, done), { leftMs });
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

const toProgress = ({ state, bytes_total: total }: PullRow, done: number) =>
  state === 'queued'
    ? 'waiting to fetch weights'
    : `fetching weights ${Math.floor((100 * done) / Math.max(1, total))} %`;
