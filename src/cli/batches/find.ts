// Finds a batch by its id or the first characters of it, and says how far it is.

import type { Client } from '#cli/client.ts';
import { findOnly } from '#cli/find.ts';
import type { BatchObject } from '#inference/apis/batches/schema.ts';
import { toCount } from '#lib/text/format.ts';

export const batchesPath = '/v1/batches';

const pageRows = 100;
const prefix = 'batch_';

/** Newest first. */
export async function listBatches(
  client: Client,
  limit = Number.POSITIVE_INFINITY,
): Promise<BatchObject[]> {
  const rows: BatchObject[] = [];
  for (;;) {
    const last = rows.at(-1);
    const query = new URLSearchParams({
      limit: String(Math.min(pageRows, limit - rows.length)),
      ...(last && { after: last.id }),
    });
    const page = await client.get<{ data: BatchObject[]; has_more: boolean }>(
      `${batchesPath}?${query}`,
    );
    rows.push(...page.data);
    if (!page.has_more || rows.length >= limit) return rows;
  }
}

/** `batch_` may be left out. */
export const findBatch = async (client: Client, wanted: string): Promise<BatchObject> =>
  findOnly(await listBatches(client), wanted.startsWith(prefix) ? wanted : `${prefix}${wanted}`, {
    noun: 'batch',
    command: 'millrace batches list',
    namesOf: () => [],
  });

export const getBatch = (client: Client, id: string) =>
  client.get<BatchObject>(`${batchesPath}/${encodeURIComponent(id)}`);

const endStates: readonly string[] = ['completed', 'failed', 'expired', 'cancelled'];

export const hasEnded = ({ status }: BatchObject) => endStates.includes(status);

export function toProgress({ request_counts: counts }: BatchObject): string {
  const { total, completed, failed } = counts;
  if (total === 0) return '-';
  const done = `${toCount(completed + failed)} of ${toCount(total)}`;
  return failed === 0 ? done : `${done}, ${toCount(failed)} failed`;
}

/** What is wrong with the batch as a whole, a line each. */
export const toErrors = ({ errors }: BatchObject): string[] =>
  (errors?.data ?? []).map(({ line, message }) =>
    line === null ? message : `Line ${line}: ${message}`,
  );
