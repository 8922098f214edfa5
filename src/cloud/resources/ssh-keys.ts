// SSH keys of an account. They are installed on machines at launch; a key added later changes no machine
// (seed 4.2.12). Generated private keys are returned once and never stored.

import { createPublicKey, generateKeyPair } from 'node:crypto';
import { promisify } from 'node:util';
import type { Audit } from '#accounts/audit/audit.ts';
import type { Principal } from '#accounts/principal.ts';
import {
  invalidParameters,
  keyInUse,
  quotaExceeded,
  sshKeyNameTaken,
  sshKeyNotFound,
} from '#cloud/errors.ts';
import type { NewSshKey, SshKey } from '#cloud/schema.ts';
import { countRows } from '#db/count-rows.ts';
import { lockAccount } from '#db/lock-account.ts';
import type { SshKeyRow } from '#db/tables/cloud-rows.ts';
import type { Database, Tx } from '#db/tables/tables.ts';
import type { Clock } from '#lib/clock.ts';
import { newId } from '#lib/ids.ts';
import { InvalidKey, type PublicKey, parsePublicKey } from '#lib/secrets/openssh.ts';

export interface SshKeys {
  add(principal: Principal, input: NewSshKey): Promise<SshKey>;
  list(accountId: string): Promise<SshKey[]>;
  remove(principal: Principal, id: string): Promise<void>;
}

interface Context {
  readonly db: Database;
  readonly clock: Clock;
  readonly audit: Audit;
  readonly maxPerAccount: number;
}

interface GivenKey {
  name: string;
  key: PublicKey;
  isGenerated: boolean;
}

const generateRsa = promisify(generateKeyPair);

export function createSshKeys(
  db: Database,
  clock: Clock,
  audit: Audit,
  { maxPerAccount }: { maxPerAccount: number },
): SshKeys {
  const context: Context = { db, clock, audit, maxPerAccount };
  return {
    add: (principal, input) => add(context, principal, input),
    async list(accountId) {
      const rows = await db
        .selectFrom('ssh_keys')
        .selectAll()
        .where('account_id', '=', accountId)
        .orderBy('created_at')
        .orderBy('id')
        .execute();
      return rows.map(toSshKey);
    },
    remove: (principal, id) => remove(context, principal, id),
  };
}

async function add(context: Context, principal: Principal, input: NewSshKey): Promise<SshKey> {
  const { name, public_key } = input;
  if (public_key != null) {
    const key = parseKey(public_key);
    return toSshKey(await insert(context, principal, { name, key, isGenerated: false }));
  }
  // Checked before the slow generation, and again by the insertion.
  await checkRoom(context, context.db, principal.accountId, name);
  const { privateKey } = await generateRsa('rsa', { modulusLength: 3072 });
  const pem = createPublicKey(privateKey).export({ type: 'spki', format: 'pem' });
  const key = parsePublicKey(String(pem));
  const row = await insert(context, principal, { name, key, isGenerated: true });
  return {
    ...toSshKey(row),
    private_key: String(privateKey.export({ type: 'pkcs1', format: 'pem' })),
  };
}

function insert(context: Context, principal: Principal, given: GivenKey): Promise<SshKeyRow> {
  const { db, clock, audit } = context;
  const { accountId } = principal;
  const { name, key, isGenerated } = given;
  return db.transaction().execute(async (tx) => {
    await lockAccount(tx, accountId);
    await checkRoom(context, tx, accountId, name);
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

/** Throws if the name is taken or the account has as many keys as it may. */
async function checkRoom(
  { maxPerAccount }: Context,
  db: Database | Tx,
  accountId: string,
  name: string,
): Promise<void> {
  const own = db.selectFrom('ssh_keys').where('account_id', '=', accountId);
  const same = await own.select('id').where('name', '=', name).executeTakeFirst();
  if (same !== undefined) throw sshKeyNameTaken(name);
  if ((await countRows(own)) >= maxPerAccount) throw quotaExceeded();
}

async function remove({ db, audit }: Context, principal: Principal, id: string): Promise<void> {
  const { accountId } = principal;
  await db.transaction().execute(async (tx) => {
    // A launch with this key either waits for the lock or is found below.
    await lockAccount(tx, accountId);
    const row = await tx
      .deleteFrom('ssh_keys')
      .where('id', '=', id)
      .where('account_id', '=', accountId)
      .returningAll()
      .executeTakeFirst();
    if (row === undefined) throw sshKeyNotFound();
    const user = await tx
      .selectFrom('instances')
      .select('id')
      .where('account_id', '=', accountId)
      .where('ssh_key_id', '=', id)
      // Terraform terminates an instance and deletes its key at once, so a terminating one does not count.
      .where('status', 'in', ['booting', 'active', 'unhealthy'])
      .executeTakeFirst();
    if (user !== undefined) throw keyInUse();
    const details = { name: row.name, fingerprint: row.fingerprint };
    await audit.record(tx, principal, { action: 'ssh_key.deleted', resourceId: id, details });
  });
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
