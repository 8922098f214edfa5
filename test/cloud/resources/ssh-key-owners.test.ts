// SSH keys from before they had an owner: the audit log tells who added them.

import assert from 'node:assert';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { type Kysely, sql } from 'kysely';
import { up } from '#db/migrations/0034-refused-ssh-keys.ts';
import { openDatabase } from '#db/open.ts';
import { bothDatabases, createDatabase } from '#test/support/databases.ts';

for (const database of bothDatabases) {
  test(`an older SSH key belongs to the person who added it, by session or key, on ${database}`, async (t) => {
    const dataDir = await mkdtemp(join(tmpdir(), 'millrace-key-owners-'));
    const { url, drop } = await createDatabase(database);
    const db = await openDatabase({ url, poolSize: 2, dataDir });
    t.after(async () => {
      await db.destroy();
      await drop();
      await rm(dataDir, { recursive: true });
    });
    await sql`drop table refused_ssh_keys`.execute(db);
    await sql`alter table ssh_keys drop column created_by`.execute(db);
    await sql`insert into accounts (id, name, created_at) values ('a', 'a', 0)`.execute(db);
    await sql`insert into api_keys (id, account_id, label, hash, hint, scopes, created_at, created_by)
      values ('k', 'a', 'k', 'h', 'm', '[]', 0, 'bob')`.execute(db);
    for (const [id, user, key] of [
      ['1', 'ann', null],
      ['2', null, 'k'],
      ['3', null, null],
    ]) {
      await sql`insert into ssh_keys (id, account_id, name, public_key, fingerprint, created_at)
        values (${id}, 'a', ${id}, 'ssh-ed25519 AAAA', 'f', 0)`.execute(db);
      if (user === null && key === null) continue;
      await sql`insert into audit_events (id, account_id, at, action, resource_id, user_id, api_key_id, address, details)
        values (${id}, 'a', 0, 'ssh_key.created', ${id}, ${user}, ${key}, '', '{}')`.execute(db);
    }
    await up(db as unknown as Kysely<unknown>);
    const rows = await db.selectFrom('ssh_keys').select('created_by').orderBy('id').execute();
    assert.deepEqual(
      rows.map(({ created_by }) => created_by),
      ['ann', 'bob', null],
    );
  });
}
