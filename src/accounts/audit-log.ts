// Reads the audit log, newest entries first, one page at a time.

import type { Database } from '#db/tables.ts';
import { invalidBody } from '#lib/errors.ts';

export interface AuditPage {
  data: {
    id: string;
    at: string;
    action: string;
    resource_id: string | null;
    user_id: string | null;
    api_key_id: string | null;
    address: string;
    details: Record<string, unknown>;
  }[];
  /** Cursor of the next page, to be passed as `before`; null on the last page. */
  next: string | null;
}

export interface AuditPageOptions {
  limit: number;
  before?: string | undefined;
  action?: string | undefined;
  /** The user who made the change. */
  userId?: string | undefined;
  apiKeyId?: string | undefined;
  /** ISO 8601; the end is exclusive. */
  from?: string | undefined;
  to?: string | undefined;
}

export interface AuditLog {
  page(accountId: string, options: AuditPageOptions): Promise<AuditPage>;
}

export function createAuditLog(db: Database): AuditLog {
  return {
    async page(accountId, { limit, before, ...filter }) {
      let query = db.selectFrom('audit_events').selectAll().where('account_id', '=', accountId);
      const { action, userId, apiKeyId, from, to } = filter;
      if (action !== undefined) query = query.where('action', '=', action);
      if (userId !== undefined) query = query.where('user_id', '=', userId);
      if (apiKeyId !== undefined) query = query.where('api_key_id', '=', apiKeyId);
      if (from !== undefined) query = query.where('at', '>=', parseTime('from', from));
      if (to !== undefined) query = query.where('at', '<', parseTime('to', to));
      if (before !== undefined) {
        const { at, id } = parseCursor(before);
        query = query.where((row) =>
          row.or([row('at', '<', at), row.and([row('at', '=', at), row('id', '<', id)])]),
        );
      }
      const rows = await query
        .orderBy('at', 'desc')
        .orderBy('id', 'desc')
        .limit(limit + 1)
        .execute();
      const shown = rows.slice(0, limit);
      const last = shown.at(-1);
      return {
        data: shown.map(({ account_id, at, details, ...row }) => ({
          ...row,
          at: new Date(at).toISOString(),
          details: JSON.parse(details),
        })),
        next: rows.length > limit && last !== undefined ? `${last.at}.${last.id}` : null,
      };
    },
  };
}

/** The schema accepts a leap second, which JavaScript parses as NaN. */
function parseTime(name: string, text: string): number {
  const at = Date.parse(text);
  if (Number.isNaN(at)) throw invalidBody(`${name} is not a time.`, name);
  return at;
}

function parseCursor(cursor: string): { at: number; id: string } {
  const [, at, id] = /^(\d{1,16})\.([0-9a-f]{32})$/.exec(cursor) ?? [];
  if (at === undefined || id === undefined) {
    throw invalidBody('before is not a page mark of this list.', 'before');
  }
  return { at: Number(at), id };
}
