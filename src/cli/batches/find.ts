// Batches as commands list and find them, and how far one is.

import type { Client } from '#cli/client.ts';
import { findOnly } from '#cli/find.ts';
import type { Noun } from '#cli/noun.ts';
import type { BatchObject } from '#inference/apis/batches/schema.ts';
import { toCount } from '#lib/text/format.ts';

export const batchesPath = '/v1/batches';

const pageRows = 100;
const prefix = 'batch_';

export const batches: Noun<BatchObject> = {
  noun: 'batch',
  plural: 'batches',
  command: 'millrace batches list',
  needs: 'any',
  argument: ['<batch>', 'Id or its first characters, from `millrace batches list`'],
  namesOf: () => [],
  read: readBatches,
  /** `batch_` may be left out. */
  async find(client, wanted) {
    const id = wanted.startsWith(prefix) ? wanted : `${prefix}${wanted}`;
    return findOnly(await readBatches(client), id, batches);
  },
};

/** Newest first. The pages are those of OpenAI's API. */
async function readBatches(
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
