// Ends ssh for people who were removed: their keys are deleted from the account, and its machines refuse them, also
// where a tenant wrote them into `authorized_keys`. The reconciler tells the machines.

import type { Audit } from '#accounts/audit/audit.ts';
import type { PersonalSsh } from '#accounts/people/members.ts';
import type { Principal } from '#accounts/principal.ts';
import type { LostSsh } from '#accounts/schema.ts';
import type { SshKeyRow } from '#db/tables/cloud-rows.ts';
import type { Database, Tx } from '#db/tables/tables.ts';
import type { Clock } from '#lib/clock.ts';
import { markStale } from './firewall.ts';

export function createSshAccess(
  db: Database,
  clock: Clock,
  { audit, nudge }: { audit: Audit; nudge(): void },
): PersonalSsh {
  return {
    find: async (accountId, userId) => toLost(db, accountId, await keysOf(db, accountId, userId)),
    async end(tx, principal, userId) {
      const { accountId } = principal;
      const keys = await keysOf(tx, accountId, userId);
      if (keys.length === 0) return { ssh_keys: [], machines: [] };
      const lost = await toLost(tx, accountId, keys);
      for (const key of keys) await deleteKey(tx, audit, principal, key);
      await refuseKeys(tx, accountId, keys, clock.now());
      return lost;
    },
    ended: nudge,
  };
}

/** The keys that a person added, and the same keys under other names. */
async function keysOf(connection: Database | Tx, accountId: string, userId: string) {
  const all = await connection
    .selectFrom('ssh_keys')
    .selectAll()
    .where('account_id', '=', accountId)
    .orderBy('created_at')
    .execute();
  const known = new Set(
    all.filter((row) => row.created_by === userId).map(({ fingerprint }) => fingerprint),
  );
  return all.filter(({ fingerprint }) => known.has(fingerprint));
}

async function toLost(
  connection: Database | Tx,
  accountId: string,
  keys: readonly SshKeyRow[],
): Promise<LostSsh> {
  const known = new Set(keys.map(({ public_key }) => toBareKey(public_key)));
  const instances = await connection
    .selectFrom('instances')
    .select(['id', 'name', 'ssh_public_key'])
    .where('account_id', '=', accountId)
    .where('status', 'in', ['booting', 'active', 'unhealthy'])
    .where('ssh_public_key', '!=', '')
    .orderBy('launched_at')
    .execute();
  return {
    ssh_keys: keys.map(({ id, name }) => ({ id, name })),
    machines: instances
      .filter(({ ssh_public_key }) => known.has(toBareKey(ssh_public_key)))
      .map(({ id, name }) => ({ id, name })),
  };
}

export async function deleteKey(tx: Tx, audit: Audit, principal: Principal, row: SshKeyRow) {
  const { id, name, fingerprint } = row;
  await tx.deleteFrom('ssh_keys').where('id', '=', id).execute();
  const details = { name, fingerprint };
  await audit.record(tx, principal, { action: 'ssh_key.deleted', resourceId: id, details });
}

/** Makes all machines of the account refuse the keys. Call the reconciler after the commit. */
export async function refuseKeys(
  tx: Tx,
  account_id: string,
  keys: readonly Pick<SshKeyRow, 'public_key'>[],
  now: number,
): Promise<void> {
  for (const key of keys) {
    const public_key = toBareKey(key.public_key);
    await tx
      .insertInto('refused_ssh_keys')
      .values({ account_id, public_key, refused_at: now })
      .onConflict((conflict) => conflict.doNothing())
      .execute();
  }
  await markStale(tx, now).where('account_id', '=', account_id).execute();
}

/** A key that is added again is accepted again, by machines that still have it. */
export async function acceptKey(tx: Tx, accountId: string, line: string, now: number) {
  const { numDeletedRows } = await tx
    .deleteFrom('refused_ssh_keys')
    .where('account_id', '=', accountId)
    .where('public_key', '=', toBareKey(line))
    .executeTakeFirst();
  if (numDeletedRows > 0n) await markStale(tx, now).where('account_id', '=', accountId).execute();
}

export async function listRefusedKeys(db: Database, accountId: string): Promise<string[]> {
  const rows = await db
    .selectFrom('refused_ssh_keys')
    .select('public_key')
    .where('account_id', '=', accountId)
    .orderBy('public_key')
    .execute();
  return rows.map(({ public_key }) => public_key);
}

/** A public key without its comment. */
export const toBareKey = (line: string) => line.split(' ', 2).join(' ');
