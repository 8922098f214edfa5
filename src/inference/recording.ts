// What one request used and how it went, gathered as it happens. Metrics, usage rows, limits and traces are
// all fed from here, so that they can't disagree.

import type { Reservation } from '../accounts/limits/limits.ts';
import type { Usage as UsageRows } from '../accounts/usage/usage.ts';
import type { Trail } from './attempt.ts';
import type { CatalogEntry } from './catalog.ts';
import { costOf } from './cost.ts';
import type { Task, Usage } from './engine.ts';
import type { Meter, Served } from './meter.ts';
import type { MissingCounts } from './missing-counts.ts';
import type { Plan } from './plan.ts';
import type { Traces } from './traces.ts';
import { elapsedMs, type Visit } from './visit.ts';

/** Opened once the request was let in; closed exactly once, however it ends. */
export interface Recording {
  /** For the backend, so that its own spans join the trace. */
  readonly traceHeaders: Readonly<Record<string, string>> | undefined;
  planned(plan: Plan): void;
  used(soFar: Usage): void;
  usage(): Usage | null;
  /** Counts what the backend did not. Undefined when there is nothing to wait for. */
  complete(): Promise<void> | undefined;
  /** Its answer begins; tells the milliseconds spent here so far, neither in the engine nor in the queue. */
  begun(): number;
  /** In one word, as the client was told. */
  failed(code: string | null): void;
  close(aborted: boolean): void;
}

export type OpenRecording = (
  visit: Visit,
  task: Task,
  asked: CatalogEntry,
  way: { reservation: Reservation; trail: Trail },
) => Recording;

export function createRecordings(
  meter: Meter,
  usageRows: UsageRows,
  traces: Traces | null,
  missing: MissingCounts,
): OpenRecording {
  return (visit, task, asked, { reservation, trail }) => {
    const operation = task.kind === 'chat' ? 'chat' : 'text_completion';
    const { id, caller, headers } = visit;
    const { accountId, keyId, userId } = caller;
    const row = usageRows.open({ id, accountId, keyId, userId, operation, model: asked.id });
    const trace = traces?.start(headers, operation, asked.id);
    let served = asked;
    let promptTokens: number | null = null;
    let usage: Usage | null = null;
    let firstTokenMs: number | null = null;
    let overheadMs = 0;
    let failure: { code: string | null } | null = null;

    function used(soFar: Usage): void {
      // A backend that was cut off has not said how long the prompt was.
      const isKnown = soFar.prompt_tokens > 0 || promptTokens === null;
      usage = isKnown ? soFar : withPrompt(soFar, promptTokens ?? 0);
      if (soFar.completion_tokens > 0) firstTokenMs ??= elapsedMs(visit);
      row.progress(toCounts(usage, firstTokenMs, costOf(served.price, usage)));
    }

    return {
      traceHeaders: trace?.headers,
      used,
      planned(plan) {
        ({ served, promptTokens } = plan);
        row.progress({ servedModel: served.id });
      },
      usage: () => usage,
      complete() {
        if (usage === null || usage.prompt_tokens > 0) return undefined;
        return missing.ofPrompt(served, task).then((tokens) => {
          promptTokens = tokens;
          if (usage !== null) used(usage);
        });
      },
      begun() {
        if (task.body.stream === true && failure === null) firstTokenMs ??= elapsedMs(visit);
        row.progress({ backend: trail.backend?.name ?? '' });
        overheadMs = Math.max(0, elapsedMs(visit) - trail.engineMs - trail.queuedMs);
        return overheadMs;
      },
      failed(code) {
        failure = { code };
      },
      close(aborted) {
        const outcome = aborted ? 'aborted' : failure === null ? 'done' : 'failed';
        const code = outcome === 'failed' ? (failure?.code ?? null) : null;
        const backend = trail.backend?.name ?? '';
        const durationMs = elapsedMs(visit);
        const costNano = costOf(served.price, usage);
        const all: Served = {
          operation,
          asked: asked.id,
          served: served.id,
          backend,
          outcome,
          usage,
          firstTokenMs,
          durationMs,
          queuedMs: trail.queuedMs,
          overheadMs,
        };
        reservation.settle({ tokens: usage?.total_tokens ?? 0, costNano });
        row.close({ status: outcome, code, backend, durationMs, costNano });
        meter.record(all);
        trace?.end(all, id, code);
      },
    };
  };
}

const withPrompt = (usage: Usage, promptTokens: number): Usage => ({
  ...usage,
  prompt_tokens: promptTokens,
  total_tokens: promptTokens + usage.completion_tokens,
});

const toCounts = (usage: Usage, firstTokenMs: number | null, costNano: number) => ({
  promptTokens: usage.prompt_tokens,
  completionTokens: usage.completion_tokens,
  cachedTokens: usage.prompt_tokens_details?.cached_tokens ?? 0,
  firstTokenMs,
  costNano,
});
