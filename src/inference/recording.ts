// What one request used and how it went, gathered as it happens. Metrics, usage rows and limits are all fed
// from here, so that they can't disagree.

import type { FastifyReply } from 'fastify';
import { principalOf } from '../accounts/authenticate.ts';
import type { Reservation } from '../accounts/limits/limits.ts';
import type { Usage as UsageRows } from '../accounts/usage/usage.ts';
import type { CatalogEntry } from './catalog.ts';
import { costOf } from './cost.ts';
import type { Task, Usage } from './engine.ts';
import type { Meter } from './meter.ts';

type Outcome = 'done' | 'aborted' | 'failed';

/** Opened once the request was let in; closed exactly once, however it ends. */
export interface Recording {
  /** Who serves it; told again when another one takes over. */
  servedBy(entry: CatalogEntry, backend: string): void;
  used(soFar: Usage): void;
  usage(): Usage | null;
  /** In one word, as the client was told. */
  failed(code: string | null): void;
  close(aborted: boolean): { outcome: Outcome; firstTokenMs: number | null };
}

export type OpenRecording = (
  reply: FastifyReply,
  task: Task,
  asked: CatalogEntry,
  reservation: Reservation,
) => Recording;

export function createRecordings(meter: Meter, usageRows: UsageRows): OpenRecording {
  return (reply, task, asked, reservation) => {
    const operation = task.kind === 'chat' ? 'chat' : 'text_completion';
    const principal = principalOf(reply.request);
    const isKey = principal.kind === 'key';
    const row = usageRows.open({
      id: reply.request.id,
      accountId: principal.accountId,
      keyId: isKey ? principal.keyId : null,
      userId: isKey ? null : principal.userId,
      operation,
      model: asked.id,
    });
    let served = asked;
    let backend = '';
    let usage: Usage | null = null;
    let firstTokenMs: number | null = null;
    let failure: { code: string | null } | null = null;
    return {
      servedBy(entry, name) {
        served = entry;
        backend = name;
        row.progress({ servedModel: served.id, backend });
      },
      used(soFar) {
        usage = soFar;
        if (soFar.completion_tokens > 0) firstTokenMs ??= reply.elapsedTime;
        row.progress(toCounts(soFar, firstTokenMs, costOf(served.price, soFar)));
      },
      usage: () => usage,
      failed(code) {
        failure = { code };
      },
      close(aborted) {
        const outcome = aborted ? 'aborted' : failure === null ? 'done' : 'failed';
        const durationMs = reply.elapsedTime;
        const costNano = costOf(served.price, usage);
        reservation.settle({ tokens: usage?.total_tokens ?? 0, costNano });
        row.close({
          status: outcome,
          code: outcome === 'failed' ? (failure?.code ?? null) : null,
          durationMs,
          costNano,
        });
        meter.record({
          operation,
          asked: asked.id,
          served: served.id,
          backend,
          outcome,
          usage,
          firstTokenMs,
          durationMs,
        });
        return { outcome, firstTokenMs };
      },
    };
  };
}

const toCounts = (usage: Usage, firstTokenMs: number | null, costNano: number) => ({
  promptTokens: usage.prompt_tokens,
  completionTokens: usage.completion_tokens,
  cachedTokens: usage.prompt_tokens_details?.cached_tokens ?? 0,
  firstTokenMs,
  costNano,
});
