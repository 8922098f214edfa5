// Kills the process of the cloud repeatedly, at moments chosen by a seed, while it launches, restarts and
// terminates instances. After each kill and at the end, nothing is lost, duplicated or left over.

import assert from 'node:assert';
import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { openDatabase } from '#db/open.ts';
import type { Database } from '#db/tables/tables.ts';
import { newId } from '#lib/ids.ts';
import { createRandom } from '#test/support/random.ts';
import { publicKey } from './cloud.ts';
import type { CrashOptions } from './crash-child.ts';

export const seed = Number(process.env.MILLRACE_TEST_SEED ?? 20260101);

export interface Storm extends Pick<CrashOptions, 'driver' | 'endpoint'> {
  kills: number;
  /** How long a process may go without a command before it is killed. */
  maxIdleMs: number;
}

export async function storm(
  context: TestContext,
  { kills, maxIdleMs, ...target }: Storm,
): Promise<void> {
  const dataDir = await mkdtemp(join(tmpdir(), 'millrace-crash-'));
  const db = await openDatabase({ url: null, poolSize: 1, dataDir });
  context.after(async () => {
    await db.destroy();
    await rm(dataDir, { recursive: true, force: true });
  });
  const accountId = await prepare(db);
  const random = createRandom(seed);
  const launched = new Set<string>();
  const terminated = new Set<string>();
  const founds: string[] = [];
  let capacity = '';
  let commands = 0;
  const readLine = (line: string) => {
    const [word, rest = ''] = line.split(/ (.*)/);
    if (word?.endsWith('ed')) commands++;
    if (word === 'launched') launched.add(rest);
    if (word === 'terminated') terminated.add(rest);
    if (word === 'found') founds.push(rest);
    if (word === 'capacity') capacity = rest;
  };

  for (let kill = 0; kill < kills; kill++) {
    const options = { dataDir, ...target, accountId, seed: seed + kill, mode: 'storm' } as const;
    const child = start(options, readLine);
    await child.ready;
    // A number of commands, so that a slow computer gets more time; at most `maxIdleMs` without one.
    const wanted = commands + 1 + random(8);
    const deadline = Date.now() + maxIdleMs;
    while (commands < wanted && Date.now() < deadline) await sleep(1);
    await sleep(random(25));
    await child.kill();
    await check(db, launched, terminated);
  }

  const calm = start({ dataDir, ...target, accountId, seed, mode: 'calm' }, readLine);
  await calm.ready;
  assert.equal(await calm.exit, 0);
  await check(db, launched, terminated);
  assert.equal(founds.length, kills + 2);
  for (const found of founds) assert.equal(found, '{"orphans":[],"lost":[]}');
  const [, free, total] = /^(\d+) of (\d+)$/.exec(capacity) ?? [];
  assert(free !== undefined && free === total, `capacity leaked: ${capacity}`);
  assert(launched.size >= kills / 4, `too few launches: ${launched.size}`);
  context.diagnostic(`${commands} commands, ${launched.size} launches, ${kills} kills`);
}

async function check(
  db: Database,
  launched: ReadonlySet<string>,
  terminated: ReadonlySet<string>,
): Promise<void> {
  const rows = await db.selectFrom('instances').selectAll().execute();
  const byId = new Map(rows.map((row) => [row.id, row]));
  for (const id of launched) assert(byId.has(id), `instance ${id} was acknowledged but is lost`);
  for (const id of terminated) {
    const { status } = byId.get(id) ?? {};
    assert(status === 'terminating' || status === 'terminated', `${id} came back as ${status}`);
  }
  const living = rows.filter(({ status }) => status !== 'terminated');
  for (const { id, status, status_reason } of living) {
    assert.notEqual(status, 'unhealthy', `${id}: ${status_reason}`);
  }
  assert.equal(new Set(living.map(({ address }) => address)).size, living.length);
}

function start(options: CrashOptions, readLine: (line: string) => void) {
  const child = spawn(
    process.execPath,
    [join(import.meta.dirname, 'crash-child.ts'), JSON.stringify(options)],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
      // A start is mostly compilation; all of them share one cache.
      env: { ...process.env, NODE_COMPILE_CACHE: join(options.dataDir, 'compile-cache') },
    },
  );
  const exit = new Promise<number | null>((done) => child.once('close', done));
  const ready = new Promise<void>((done, fail) => {
    createInterface({ input: child.stdout }).on('line', (line) => {
      if (line === 'ready') done();
      readLine(line);
    });
    child.once('close', () => fail(new Error('the child exited by itself')));
  });
  return {
    ready,
    exit,
    async kill() {
      assert.equal(child.exitCode, null, 'the child exited before it was killed');
      child.kill('SIGKILL');
      await exit;
    },
  };
}

async function prepare(db: Database): Promise<string> {
  const accountId = newId();
  const now = Date.now();
  await db.insertInto('accounts').values({ id: accountId, name: 'a', created_at: now }).execute();
  await db
    .insertInto('ssh_keys')
    .values({
      id: newId(),
      account_id: accountId,
      name: 'laptop',
      public_key: publicKey,
      fingerprint: '',
      created_at: now,
      is_generated: 0,
    })
    .execute();
  return accountId;
}
