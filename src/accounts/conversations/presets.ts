// Presets: settings of the playground that a person has saved under a name.

import type { SessionPrincipal } from '#accounts/principal.ts';
import { countRows } from '#db/count-rows.ts';
import { lockAccount } from '#db/lock-account.ts';
import type { PresetRow } from '#db/tables/account-rows.ts';
import type { Database } from '#db/tables/tables.ts';
import { conflict, invalidBody, notFound } from '#lib/errors.ts';
import { newId } from '#lib/ids.ts';
import type { NewPreset } from './schema.ts';

const maxPresets = 100;
/** All presets of a person are listed at once. */
const maxPresetBytes = 64 * 1024;

export interface Presets {
  /** Those of the person, by name. */
  list(principal: SessionPrincipal): Promise<PresetRow[]>;
  /** Replaces the preset of the same name. */
  save(principal: SessionPrincipal, input: NewPreset): Promise<PresetRow>;
  remove(principal: SessionPrincipal, id: string): Promise<void>;
}

export function createPresets(db: Database): Presets {
  const ofPerson = ({ accountId, userId }: SessionPrincipal) =>
    db
      .selectFrom('presets')
      .selectAll()
      .where('account_id', '=', accountId)
      .where('user_id', '=', userId);

  async function save(principal: SessionPrincipal, { name, settings }: NewPreset) {
    const { accountId: account_id, userId: user_id } = principal;
    const row = { id: newId(), account_id, user_id, name, settings: JSON.stringify(settings) };
    if (Buffer.byteLength(row.settings) > maxPresetBytes) {
      throw invalidBody('A preset must be at most 64 KiB of JSON.', 'settings');
    }
    return db.transaction().execute(async (tx) => {
      await lockAccount(tx, account_id);
      const own = tx.selectFrom('presets').where('user_id', '=', user_id);
      if ((await countRows(own.where('name', '!=', name))) >= maxPresets) {
        throw conflict(`You have ${maxPresets} presets, the maximum. Delete one first.`);
      }
      return tx
        .insertInto('presets')
        .values(row)
        .onConflict((same) =>
          same.columns(['user_id', 'name']).doUpdateSet({ settings: row.settings }),
        )
        .returningAll()
        .executeTakeFirstOrThrow();
    });
  }

  return {
    list: (principal) => ofPerson(principal).orderBy('name').limit(maxPresets).execute(),
    save,
    async remove({ accountId, userId }, id) {
      const { numDeletedRows } = await db
        .deleteFrom('presets')
        .where('id', '=', id)
        .where('account_id', '=', accountId)
        .where('user_id', '=', userId)
        .executeTakeFirst();
      if (numDeletedRows === 0n) throw notFound('This preset');
    },
  };
}
