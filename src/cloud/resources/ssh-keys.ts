// SSH keys of an account. They are given to machines at launch; adding one later changes no machine
// (seed 4.2.12). Generated private keys are answered once and never stored.

import { createPublicKey, generateKeyPair } from 'node:crypto';
import { promisify } from 'node:util';
import type { Audit } from '#accounts/audit.ts';
import type { Principal } from '#accounts/principal.ts';
import {
  invalidParameters,
  keyInUse,
  nameTaken,
  quotaExceeded,
  sshKeyNotFound,
} from '#cloud/errors.ts';
import type { NewSshKey, SshKey } from '#cloud/schema.ts';
import { lockAccount } from '#db/lock-account.ts';
import type { Database, SshKeyRow, Tx } from '#db/tables.ts';
import type { Clock } from '#lib/clock.ts';
import { newId } from '#lib/ids.ts';
import { InvalidKey, type PublicKey, parsePublicKey } from '#lib/secrets/openssh.ts';

export interface SshKeys {
  add(principal: Principal, input: NewSshKey): Promise<SshKey>;
  list(accountId: string): Promise<SshKey[]>;
  remove(principal: Principal, id: string): Promise<void>;
}

const generateRsa = promisify(generateKeyPair);

export function createSshKeys(
  db: Database,
  clock: Clock,
  audit: Audit,
  options: { maxPerAccount: number },
): SshKeys {
  async function add(principal: Principal, { name, public_key }: NewSshKey): Promise<SshKey> {
    if (public_key != null) {
      return toSshKey(await insert(principal, { name, key: parseKey(public_key) }));
    }
    // Before the work, which is long; the insertion asks again.
    await checkRoom(db, principal.accountId, name);
    const { privateKey } = await generateRsa('rsa', { modulusLength: 3072 });
    const pem = createPublicKey(privateKey).export({ type: 'spki', format: 'pem' });
    const key = parsePublicKey(String(pem));
    const row = await insert(principal, { name, key, isGenerated: true });
    return {
      ...toSshKey(row),
      private_key: String(privateKey.export({ type: 'pkcs1', format: 'pem' })),
    };
  }

  function insert(principal: Principal, given: GivenKey): Promise<SshKeyRow> {
    const { accountId } = principal;
    const { name, key, isGenerated = false } = given;
    return db.transaction().execute(async (tx) => {
      await lockAccount(tx, accountId);
      await checkRoom(tx, accountId, name);
      const row: SshKeyRow = {
        id: newId(),
        account_id: accountId,
        name,
        public_key: key.line,
        fingerprint: key.fingerprint,
        created_at: clock.now(),
        is_generated: isGenerated ? 1 : 0,
      };
      await tx.insertInto('ssh_keys').values(row).execute();
      const details = { name, fingerprint: key.fingerprint };
      await audit.record(tx, principal, { action: 'ssh_key.created', resourceId: row.id, details });
      return row;
    });
  }

  async function checkRoom(where: Database | Tx, accountId: string, name: string) {
    const own = where.selectFrom('ssh_keys').where('account_id', '=', accountId);
    if (await own.select('id').where('name', '=', name).executeTakeFirst()) throw nameTaken(name);
    const { count } = await own
      .select((row) => row.fn.countAll<number>().as('count'))
      .executeTakeFirstOrThrow();
    if (count >= options.maxPerAccount) throw quotaExceeded();
  }

  async function list(accountId: string): Promise<SshKey[]> {
    const rows = await db
      .selectFrom('ssh_keys')
      .selectAll()
      .where('account_id', '=', accountId)
      .orderBy('created_at')
      .orderBy('id')
      .execute();
    return rows.map(toSshKey);
  }

  async function remove(principal: Principal, id: string): Promise<void> {
    await db.transaction().execute(async (tx) => {
      // A launch with this key waits, or has been counted below.
      await lockAccount(tx, principal.accountId);
      const row = await tx
        .deleteFrom('ssh_keys')
        .where('id', '=', id)
        .where('account_id', '=', principal.accountId)
        .returningAll()
        .executeTakeFirst();
      if (row === undefined) throw sshKeyNotFound();
      const user = await tx
        .selectFrom('instances')
        .select('id')
        .where('account_id', '=', principal.accountId)
        .where('ssh_key_id', '=', id)
        .where('status', '!=', 'terminated')
        .executeTakeFirst();
      if (user !== undefined) throw keyInUse();
      const details = { name: row.name, fingerprint: row.fingerprint };
      await audit.record(tx, principal, { action: 'ssh_key.deleted', resourceId: id, details });
    });
  }

  return { add, list, remove };
}

interface GivenKey {
  name: string;
  key: PublicKey;
  isGenerated?: boolean;
}

const toSshKey = ({ id, name, public_key }: SshKeyRow): SshKey => ({ id, name, public_key });

function parseKey(text: string): PublicKey {
  try {
    return parsePublicKey(text);
  } catch (error) {
    if (error instanceof InvalidKey) {
      throw invalidParameters(`Error in request body at 'public_key': ${error.message}`);
    }
    throw error;
  }
}
