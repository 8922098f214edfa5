// The audit log: one row per change, written in the transaction that makes the change, so that neither
// exists without the other.

import type { Principal } from '#accounts/principal.ts';
import type { AuditAction } from '#accounts/schema.ts';
import type { Database, Tx } from '#db/tables/tables.ts';
import type { Clock } from '#lib/clock.ts';
import { newId } from '#lib/ids.ts';

export interface AuditEntry {
  action: AuditAction;
  resourceId?: string;
  details?: Record<string, unknown>;
}

/** Who made the change: a principal, or what is known of a person who is not signed in yet. */
export type Actor =
  | Principal
  | { kind: 'visitor'; accountId: string | null; userId: string | null; address: string };

export const system = {
  kind: 'visitor',
  accountId: null,
  userId: null,
  address: 'server',
} as const;

/** The server, acting for an account. */
export const serverOf = (accountId: string) => ({ ...system, accountId });

export interface Audit {
  record(db: Database | Tx, actor: Actor, entry: AuditEntry): Promise<void>;
}

export function createAudit(clock: Clock): Audit {
  return {
    async record(db, actor, { action, resourceId, details }) {
      await db
        .insertInto('audit_events')
        .values({
          id: newId(),
          account_id: actor.accountId,
          at: clock.now(),
          action,
          resource_id: resourceId ?? null,
          user_id: actor.kind === 'key' ? null : actor.userId,
          api_key_id: actor.kind === 'key' ? actor.keyId : null,
          address: actor.address,
          details: JSON.stringify(details ?? {}),
        })
        .execute();
    },
  };
}
