// Runs one line through the pipeline that serves every request, until there is a result to store. What the line used is
// returned with the result, so that both are written in one transaction.

import { setTimeout as pause } from 'node:timers/promises';
import { OpenEntry, type UsageFacts } from '#accounts/usage/entry.ts';
import type { BatchRow } from '#db/tables/batch-rows.ts';
import type { UsageRequestRow } from '#db/tables/usage-rows.ts';
import { toHeaderObject } from '#http/response-headers.ts';
import type { ListedEndpoint } from '#inference/apis/apis.ts';
import { KeptDelivery } from '#inference/delivery.ts';
import type { Catalog } from '#inference/models/catalog.ts';
import type { Serve } from '#inference/serving/serve.ts';
import type { Clock } from '#lib/clock.ts';
import { newId } from '#lib/ids.ts';
import { type LineResult, type Prepare, parseLine, toResult } from './line.ts';
import type { InputLine } from './line-reader.ts';
import type { LineSlots } from './slots.ts';

export interface ServeLineParts {
  readonly serve: Serve;
  readonly prepare: Prepare;
  readonly catalog: Catalog;
  readonly slots: LineSlots;
  readonly clock: Clock;
  readonly priceFactor: number;
  readonly maxValues: number;
}

export interface ServedLine {
  readonly result: LineResult;
  /** Null if the line used nothing. */
  readonly usage: UsageRequestRow | null;
}

/** How a line is cut off. */
export interface LineSignals {
  /** Ends the line wherever it is. */
  readonly run: AbortSignal;
  /** Ends the line only while it waits for its turn or for a retry. Aborted whenever `run` is. */
  readonly wait: AbortSignal;
}

interface LineSource {
  readonly batch: BatchRow;
  readonly endpoint: ListedEndpoint;
}

/** A backend may fail because of the request, so a line that breaks it is not run for ever. */
const maxFailures = 3;
/** Over a limit, or overloaded; 529 is how the Messages API says the latter. */
const busyStatuses = [429, 503, 529];
const minRetryMs = 1_000;
const maxRetryMs = 60_000;

/** Rejects with the reason of the signal that aborts. */
export async function serveLine(
  parts: ServeLineParts,
  source: LineSource,
  line: InputLine,
  signals: LineSignals,
): Promise<ServedLine> {
  let failures = 0;
  for (let attempts = 0; ; attempts++) {
    const { delivery, usage, id, customId } = await tryLine(parts, source, line, signals);
    signals.run.throwIfAborted();
    const { status, body } = delivery;
    const isBusy = busyStatuses.includes(status);
    if (status >= 500 && !isBusy) failures++;
    const headers = toHeaderObject(delivery.headers);
    const mayRetry = headers['x-should-retry'] !== 'false' && failures < maxFailures;
    if (!mayRetry || !(isBusy || status >= 500)) {
      return { result: toResult(id, customId, { status, body }), usage };
    }
    const waitMs = Number(headers['retry-after-ms'] ?? minRetryMs * 2 ** Math.min(attempts, 10));
    await pause(Math.min(Math.max(waitMs, minRetryMs), maxRetryMs), undefined, {
      signal: signals.wait,
    });
  }
}

interface TriedLine {
  readonly delivery: KeptDelivery;
  readonly usage: UsageRequestRow | null;
  readonly id: string;
  readonly customId: string;
}

async function tryLine(
  parts: ServeLineParts,
  { batch, endpoint }: LineSource,
  line: InputLine,
  signals: LineSignals,
): Promise<TriedLine> {
  const { account_id: accountId, key_id: keyId, user_id: userId } = batch;
  const id = newId();
  const delivery = new KeptDelivery(signals.run);
  const request = parseLine(line.bytes, endpoint.url, parts.maxValues);
  // Every line was checked before the first one ran.
  if (!('custom_id' in request)) throw new Error(`a line of ${batch.id} has changed`);
  const customId = request.custom_id;
  const prepared = await parts.prepare(endpoint, request.body, { id, accountId });
  if ('response' in prepared) {
    // Unless it needs no model, it was valid once: the models or the rules of this server have changed.
    delivery.send(prepared.response.status, [], prepared.response.body);
    return { delivery, usage: null, id, customId };
  }
  const { task, format, addedBytes = 0 } = prepared;
  await parts.slots.acquire(accountId, task.body.model, signals.wait);
  let usage: UsageRequestRow | null = null;
  const usageRows = {
    open: (facts: UsageFacts) =>
      new OpenEntry(toBatchFacts(facts), parts.clock.now(), '', ({ row }) => {
        usage = row;
      }),
  };
  try {
    await parts.serve(
      {
        id,
        caller: { accountId, keyId, userId },
        begunMs: performance.now(),
        background: { priceFactor: parts.priceFactor, usageRows },
        headers: {},
        bodyBytes: line.bytes.length + addedBytes,
        delivery,
        fixedHeaders: [],
      },
      task,
      format,
    );
  } finally {
    parts.slots.release();
  }
  return { delivery, usage, id, customId };
}

const toBatchFacts = (facts: UsageFacts): UsageFacts => ({
  ...facts,
  operation: `batch_${facts.operation}`,
});
