// Builds the pages from web/ and docs/, once for each version of their sources. A child process builds them, so that a
// first start listens at once. Each version has its own folder, put in place by one rename. The guide has a folder of
// its own: the dashboard need not wait for it.

import { type ChildProcess, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { FastifyBaseLogger } from 'fastify';

export interface DashboardBuild {
  /** The folder with index.html and its assets; null if there is none yet. */
  find(): string | null;
  /** The folder with the guide; null if there is none yet. */
  findHelp(): string | null;
  /** Whether the build ended without anything to serve. */
  hasFailed(): boolean;
  /** Looks for the folders and starts the build if needed, once whatever runs now is done. */
  start(): void;
  stop(): void;
}

const root = join(import.meta.dirname, '../..');
export const webFolder = join(root, 'web');

/** Placeholder in the built page that each response replaces with its nonce. */
export const noncePlaceholder = '__NONCE__';

export function createDashboardBuild(log: FastifyBaseLogger): DashboardBuild {
  // Named on first use: hashing the sources takes 25 ms, which a start need not wait for.
  let named: { dashboard: string; help: string } | undefined;
  const folders = () => (named ??= { dashboard: toBuildFolder(), help: toHelpFolder() });
  let ready = false;
  let failed = false;
  let waiting: NodeJS.Immediate | undefined;
  let child: ChildProcess | null = null;

  function find() {
    const { dashboard } = folders();
    ready ||= isBuilt(dashboard);
    return ready ? dashboard : null;
  }

  function findHelp() {
    const { help } = folders();
    return isBuilt(help) ? help : null;
  }

  function build() {
    if (find() !== null && findHelp() !== null) return;
    // A machine that runs an engine has only what that needs.
    failed = !existsSync(webFolder);
    if (failed) return;
    const startedAt = performance.now();
    child = spawn(process.execPath, [join(webFolder, 'build.ts')], {
      cwd: root,
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    let output = '';
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      output = (output + text).slice(-4096);
    });
    child.once('error', (error) => {
      failed = true;
      log.error({ err: error }, 'the dashboard could not be built');
    });
    child.once('exit', (code, signal) => {
      child = null;
      const ms = Math.round(performance.now() - startedAt);
      if (code === 0) return log.info({ ms }, 'the dashboard is built');
      failed = true;
      if (signal === null) log.error({ output }, 'the dashboard could not be built');
    });
  }

  return {
    find,
    findHelp,
    hasFailed: () => failed,
    start() {
      waiting = setImmediate(build);
    },
    stop() {
      clearImmediate(waiting);
      child?.kill();
    },
  };
}

export const isBuilt = (folder: string) => existsSync(join(folder, 'index.html'));

/** In an npm package, which has neither the sources nor the compiler. */
const packaged = join(import.meta.dirname, '../dashboard');
const packagedHelp = join(import.meta.dirname, '../help');

/** Named after a hash of all inputs: the sources and the versions of what they import. */
export const toBuildFolder = () =>
  isBuilt(packaged) ? packaged : toFolder('', [webFolder], sharedSources, helpSources);

export const toHelpFolder = () =>
  isBuilt(packagedHelp) ? packagedHelp : toFolder('help-', helpFolders, helpShares);

/** Sources outside of web whose code, and not only its types, is part of the dashboard. */
export const sharedSources = [
  'src/lib/text/deployment-log-text.ts',
  'src/lib/text/deployment-failure.ts',
  'src/lib/text/deployment-name.ts',
  'src/lib/text/format.ts',
  'src/lib/text/ladder-text.ts',
  'src/lib/read-events.ts',
  'src/lib/text/schedule-text.ts',
  'src/lib/schema/pattern-words.ts',
  'src/lib/schema/problem-words.ts',
  'src/lib/text/weights-text.ts',
  'src/server/openapi/introduction.ts',
];

const helpSources = join(webFolder, 'help');
const helpFolders = [helpSources, join(webFolder, 'public'), join(root, 'docs')];
/** What the guide takes from the dashboard. */
const helpShares = ['web/src/browser/clipboard.ts', 'web/src/code-colors.css'];

/** What builds write. Another process may be removing it, so it must not even be listed. */
const generated = join(webFolder, 'dist');

function listFiles(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (path === generated) return [];
    if (entry.isDirectory()) return listFiles(path);
    return entry.isFile() ? [path] : [];
  });
}

function toFolder(prefix: string, folders: string[], files: string[], except = ''): string {
  const hash = createHash('sha256');
  const listed = folders
    .filter((folder) => existsSync(folder))
    .flatMap(listFiles)
    .filter((file) => except === '' || !file.startsWith(except))
    .sort();
  const named = [...files, 'package-lock.json'].map((name) => join(root, name));
  for (const file of [...listed, ...named.filter((file) => existsSync(file))]) {
    hash
      .update(`${file.slice(root.length)}\0`)
      .update(readFileSync(file))
      .update('\0');
  }
  return join(webFolder, 'dist', `${prefix}${hash.digest('hex').slice(0, 16)}`);
}
