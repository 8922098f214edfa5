// Reads request rows: a page at a time, newest first, or all of a time span for export, oldest first.

import { sql } from 'kysely';
import { type PageOptions, readPage } from '#accounts/paging.ts';
import type { Database, UsageRequestRow, UsageStatus } from '#db/tables.ts';
import { toDollars } from './dollars.ts';
import type { UsageRequest, UsageRequestPage } from './schema.ts';

export interface RequestFilter {
  model?: string | undefined;
  key?: string | undefined;
  status?: UsageStatus | undefined;
}

export interface UsageRequests {
  /** A page begins where the last one ended, even if requests arrived in between. */
  page(accountId: string, filter: RequestFilter & PageOptions): Promise<UsageRequestPage>;
  /** Requests that began in the span, 500 at a time. */
  between(
    accountId: string,
    filter: RequestFilter & { from: number; to: number },
  ): AsyncGenerator<UsageRequest[]>;
}

const exportRows = 500;

export function createUsageRequests(db: Database): UsageRequests {
  function ofAccount(accountId: string, { model, key, status }: RequestFilter) {
    let query = db
      .selectFrom('usage_requests as u')
      .leftJoin('api_keys as k', 'k.id', 'u.key_id')
      .selectAll('u')
      .select('k.label as key_label')
      .where('u.account_id', '=', accountId);
    if (model !== undefined) query = query.where('u.model', '=', model);
    if (key !== undefined) query = query.where('u.key_id', '=', key);
    if (status !== undefined) query = query.where('u.status', '=', status);
    // Repeats the condition of the partial index, so that the database uses it.
    if (status !== undefined && status !== 'done') {
      query = query.where(sql<boolean>`u.status <> 'done'`);
    }
    return query;
  }

  return {
    async page(accountId, { limit, before, ...filter }) {
      const order = { at: 'u.at', id: 'u.id', of: (row: { at: number; id: string }) => row };
      const query = ofAccount(accountId, filter);
      const { data, next } = await readPage(query, { limit, before }, order);
      return { data: data.map(toRequest), next };
    },

    async *between(accountId, { from, to, ...filter }) {
      let [at, id] = [from, ''];
      for (;;) {
        const rows = await ofAccount(accountId, filter)
          .where(sql<boolean>`(u.at, u.id) > (${at}, ${id})`)
          .where('u.at', '<', to)
          .orderBy('u.at')
          .orderBy('u.id')
          .limit(exportRows)
          .execute();
        if (rows.length > 0) yield rows.map(toRequest);
        const last = rows.at(-1);
        if (last === undefined || rows.length < exportRows) return;
        [at, id] = [last.at, last.id];
      }
    },
  };
}

const toRequest = (row: UsageRequestRow & { key_label: string | null }): UsageRequest => ({
  id: row.id,
  at: new Date(row.at).toISOString(),
  operation: row.operation,
  model: row.model,
  served_model: row.served_model,
  backend: row.backend === '' ? null : row.backend,
  key_id: row.key_id,
  key_label: row.key_label,
  status: row.status,
  code: row.code,
  prompt_tokens: row.prompt_tokens,
  completion_tokens: row.completion_tokens,
  cached_tokens: row.cached_tokens,
  first_token_ms: row.first_token_ms,
  duration_ms: row.duration_ms,
  cost: toDollars(row.cost_nano),
  reserved: row.reserved === 1,
});
