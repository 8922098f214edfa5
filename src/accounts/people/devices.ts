// Devices: browsers and CLIs that have signed in as a user before, each known by a token. Sign-ins from a device are
// throttled apart from all others, so a stranger who uses up a user's attempts does not lock the user out.

import type { Database, Tx } from '#db/tables/tables.ts';
import type { Clock } from '#lib/clock.ts';
import { hashToken, newToken } from '#lib/secrets/secrets.ts';

export interface Devices {
  /** Whether the device has signed in as the user with this email address. */
  isKnown(token: string, email: string): Promise<boolean>;
  /** Returns the token to keep: the given one if it is the user's, or else a new one. */
  remember(tx: Tx, userId: string, token: string | undefined): Promise<string>;
  /** Forgets all devices of the user. */
  forget(tx: Tx, userId: string): Promise<void>;
}

/** The most recently used are kept. */
const maxDevices = 20;

export function createDevices(db: Database, clock: Clock): Devices {
  async function remember(tx: Tx, userId: string, token: string | undefined): Promise<string> {
    const last_used_at = clock.now();
    if (token !== undefined) {
      const { numUpdatedRows } = await tx
        .updateTable('devices')
        .set({ last_used_at })
        .where('token_hash', '=', hashToken(token))
        .where('user_id', '=', userId)
        .executeTakeFirst();
      if (numUpdatedRows > 0n) return token;
    }
    const added = newToken();
    const row = { token_hash: hashToken(added), user_id: userId, last_used_at };
    await tx.insertInto('devices').values(row).execute();
    const kept = tx
      .selectFrom('devices')
      .select('token_hash')
      .where('user_id', '=', userId)
      .orderBy('last_used_at', 'desc')
      .limit(maxDevices);
    await tx
      .deleteFrom('devices')
      .where('user_id', '=', userId)
      .where('token_hash', 'not in', kept)
      .execute();
    return added;
  }

  return {
    remember,
    async isKnown(token, email) {
      const row = await db
        .selectFrom('devices')
        .innerJoin('users', 'users.id', 'devices.user_id')
        .select('devices.user_id')
        .where('devices.token_hash', '=', hashToken(token))
        .where('users.email', '=', email)
        .executeTakeFirst();
      return row !== undefined;
    },
    async forget(tx, userId) {
      await tx.deleteFrom('devices').where('user_id', '=', userId).execute();
    },
  };
}
