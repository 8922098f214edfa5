// Reads the audit log, newest entries first, one page at a time.

import { sql } from 'kysely';
import { type Page, type PageOptions, readPage } from '#accounts/paging.ts';
import type { AuditEvent } from '#accounts/schema.ts';
import { parseTime } from '#accounts/wire-time.ts';
import type { Database } from '#db/tables/tables.ts';
import { toReadable } from '#lib/text/email.ts';

export interface AuditPageOptions extends PageOptions {
  action?: string | undefined;
  /** The user who made the change. */
  userId?: string | undefined;
  apiKeyId?: string | undefined;
  /** What was changed, e.g. an instance. */
  resourceId?: string | undefined;
  /** ISO 8601; the end is exclusive. */
  from?: string | undefined;
  to?: string | undefined;
}

export interface AuditLog {
  page(accountId: string, options: AuditPageOptions): Promise<Page<AuditEvent>>;
}

export function createAuditLog(db: Database): AuditLog {
  return {
    async page(accountId, { limit, before, ...filter }) {
      let query = db
        .selectFrom('audit_events as e')
        // The person who acted or, in an event about a person who was not signed in, that person.
        .leftJoin('users as u', (join) =>
          join.on(sql<boolean>`u.id = coalesce(e.user_id,
            case when e.action like 'user.%' then e.resource_id end)`),
        )
        .leftJoin('api_keys as k', 'k.id', 'e.api_key_id')
        .leftJoin('users as changed_user', 'changed_user.id', 'e.resource_id')
        .leftJoin('api_keys as changed_key', 'changed_key.id', 'e.resource_id')
        .leftJoin('instances as changed_instance', 'changed_instance.id', 'e.resource_id')
        .leftJoin('ssh_keys as changed_ssh_key', 'changed_ssh_key.id', 'e.resource_id')
        .leftJoin('filesystems as changed_filesystem', 'changed_filesystem.id', 'e.resource_id')
        .selectAll('e')
        .select((row) => [
          'u.email as user_email',
          'k.label as api_key_label',
          row.fn
            .coalesce(
              'changed_user.email',
              'changed_key.label',
              'changed_instance.name',
              'changed_ssh_key.name',
              'changed_filesystem.name',
            )
            .as('resource_name'),
        ])
        .where('e.account_id', '=', accountId);
      const { action, userId, apiKeyId, resourceId, from, to } = filter;
      if (action !== undefined) query = query.where('e.action', '=', action);
      if (userId !== undefined) query = query.where('e.user_id', '=', userId);
      if (apiKeyId !== undefined) query = query.where('e.api_key_id', '=', apiKeyId);
      if (resourceId !== undefined) query = query.where('e.resource_id', '=', resourceId);
      if (from !== undefined) query = query.where('e.at', '>=', parseTime('from', from));
      if (to !== undefined) query = query.where('e.at', '<', parseTime('to', to));
      const order = { at: 'e.at', id: 'e.id', of: (row: { at: number; id: string }) => row };
      const { data, next } = await readPage(query, { limit, before }, order);
      return {
        data: data.map(({ account_id, at, details, ...row }) => ({
          ...row,
          user_email: toReadable(row.user_email),
          resource_name: toReadable(row.resource_name),
          at: new Date(at).toISOString(),
          details: JSON.parse(details),
        })),
        next,
      };
    },
  };
}
