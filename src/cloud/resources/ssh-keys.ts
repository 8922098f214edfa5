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
import { acceptKey, deleteKey, refuseKeys } from './ssh-access.ts';

export interface SshKeys {
  add(principal: Principal, input: NewSshKey): Promise<SshKey>;
  list(accountId: string): Promise<SshKey[]>;
  /**
   * A key that machines were launched with is deleted only if the caller says what they do with it:
   * `keep` it, or `refuse` it at once, as all machines of the account then do.
   */
  remove(principal: Principal, id: string, machines?: 'keep' | 'refuse'): Promise<void>;
}

interface Context {
  readonly db: Database;
  readonly clock: Clock;
  readonly audit: Audit;
  readonly maxPerAccount: number;
  nudge(): void;
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
  { audit, nudge }: { audit: Audit; nudge(): void },
  { maxPerAccount }: { maxPerAccount: number },
): SshKeys {
  const context: Context = { db, clock, audit, nudge, maxPerAccount };
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
    remove: (principal, id, machines) => remove(context, principal, id, machines),
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
      created_by: await findCreator(tx, principal),
    };
    await tx.insertInto('ssh_keys').values(row).execute();
    await acceptKey(tx, accountId, key.line, row.created_at);
    const details = { name, fingerprint: key.fingerprint };
    await audit.record(tx, principal, { action: 'ssh_key.created', resourceId: row.id, details });
    return row;
  });
}

/** The person who is signed in or who created the API key; null for a key of the server. */
async function findCreator(tx: Tx, principal: Principal): Promise<string | null> {
  if (principal.kind === 'session') return principal.userId;
  const key = await tx
    .selectFrom('api_keys')
    .select('created_by')
    .where('id', '=', principal.keyId)
    .executeTakeFirst();
  return key?.created_by ?? null;
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

async function remove(
  { db, clock, audit, nudge, maxPerAccount }: Context,
  principal: Principal,
  id: string,
  machines: 'keep' | 'refuse' | undefined,
): Promise<void> {
  const { accountId } = principal;
  await db.transaction().execute(async (tx) => {
    // A launch with this key either waits for the lock or is found below.
    await lockAccount(tx, accountId);
    const own = tx.selectFrom('ssh_keys').selectAll().where('account_id', '=', accountId);
    const row = await own.where('id', '=', id).executeTakeFirst();
    if (row === undefined) throw sshKeyNotFound();
    if (machines === undefined && (await isUsed(tx, row))) throw keyInUse();
    const refused = tx.selectFrom('refused_ssh_keys').where('account_id', '=', accountId);
    if (machines === 'refuse' && (await countRows(refused)) >= maxPerAccount) throw quotaExceeded();
    // A refused key opens nothing under another name either.
    const same = own.where('fingerprint', '=', row.fingerprint);
    const rows = machines === 'refuse' ? await same.execute() : [row];
    for (const each of rows) await deleteKey(tx, audit, principal, each);
    if (machines === 'refuse') await refuseKeys(tx, accountId, rows, clock.now());
  });
  nudge();
}

/** Terraform terminates an instance and deletes its key at once, so a terminating one does not count. */
const isUsed = async (tx: Tx, { id, account_id }: SshKeyRow) =>
  (await tx
    .selectFrom('instances')
    .select('id')
    .where('account_id', '=', account_id)
    .where('ssh_key_id', '=', id)
    .where('status', 'in', ['booting', 'active', 'unhealthy'])
    .executeTakeFirst()) !== undefined;

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
