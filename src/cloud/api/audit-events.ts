// The audit log in the cloud API: newest first, filtered by time and resource type, in pages.

import { sql } from 'kysely';
import { invalidParameters } from '#cloud/errors.ts';
import type { AuditEvent, AuditEventQuery } from '#cloud/schema.ts';
import { toEventTime } from '#cloud/wire.ts';
import type { AuditEventRow } from '#db/tables/account-rows.ts';
import type { Database } from '#db/tables/tables.ts';

export interface AuditEvents {
  page(
    accountId: string,
    query: AuditEventQuery,
  ): Promise<{ data: AuditEvent[]; page_token: string | null }>;
}

const pageSize = 100;
const catalogVersion = '2025-09-06';

export function createAuditEvents(db: Database): AuditEvents {
  return {
    async page(accountId, { start, end, page_token, resource_type }) {
      let query = db.selectFrom('audit_events').selectAll().where('account_id', '=', accountId);
      if (start !== undefined) query = query.where('at', '>=', parseTime('start', start));
      if (end !== undefined) query = query.where('at', '<=', parseTime('end', end));
      if (resource_type !== undefined) {
        const prefix = `${parseResource(resource_type)}.`;
        // Not "like", in which "_" matches any character.
        query = query.where(sql`substr(action, 1, ${prefix.length})`, '=', prefix);
      }
      if (page_token !== undefined) {
        const { at, id } = parseToken(page_token);
        query = query.where((row) =>
          row.or([row('at', '<', at), row.and([row('at', '=', at), row('id', '<', id)])]),
        );
      }
      const rows = await query
        .orderBy('at', 'desc')
        .orderBy('id', 'desc')
        .limit(pageSize + 1)
        .execute();
      const shown = rows.slice(0, pageSize);
      const last = shown.at(-1);
      return {
        data: shown.map(toEvent),
        page_token: rows.length > pageSize && last ? `${last.at}.${last.id}` : null,
      };
    },
  };
}

function toEvent(row: AuditEventRow): AuditEvent {
  const [resource = '', action = ''] = row.action.split('.');
  return {
    service_name: 'cloud',
    resource_name: resource,
    action,
    catalog_version: catalogVersion,
    event_id: row.id,
    event_time: toEventTime(row.at),
    actor_lrn: toLrn('identity', row.user_id),
    resource_lrns: row.resource_id === null ? [] : [`lrn:cloud:${resource}:${row.resource_id}`],
    resource_owner_lrn: toLrn('account', row.account_id),
    request_api_key_lrn: toLrn('api_key', row.api_key_id),
    additional_details: JSON.parse(row.details),
  };
}

const toLrn = (kind: string, id: string | null) => (id === null ? null : `lrn:cloud:${kind}:${id}`);

function parseTime(name: string, text: string): number {
  // An unescaped "+" in a query is a space, and clients forget to escape it.
  const iso = text.trim().replace(' ', /T.* \d\d:?\d\d$/.test(text) ? '+' : 'T');
  // A time without an offset is UTC, not the server's local time.
  const hasNoOffset = iso.includes('T') && !/(z|[+-]\d\d(:?\d\d)?)$/i.test(iso);
  const ms = /^\d{4}-\d\d-\d\d/.test(iso) ? Date.parse(hasNoOffset ? `${iso}Z` : iso) : Number.NaN;
  if (Number.isNaN(ms)) {
    throw invalidParameters(
      `Error in request query at '${name}': Input should be a valid datetime`,
    );
  }
  return ms;
}

function parseResource(text: string): string {
  const [, resource] = /^cloud\.([a-z_]{1,64})$/.exec(text) ?? [];
  if (resource === undefined) {
    throw invalidParameters(
      "Error in request query at 'resource_type': Input should be like 'cloud.api_key'",
    );
  }
  return resource;
}

function parseToken(token: string): { at: number; id: string } {
  const [, at, id] = /^(\d{1,16})\.([0-9a-f]{32})$/.exec(token) ?? [];
  if (at === undefined || id === undefined) {
    throw invalidParameters("Error in request query at 'page_token': Input is not a page token");
  }
  return { at: Number(at), id };
}
