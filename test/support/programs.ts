// What a test may run. Loaded before each test file: it sees the programs of the base system and those that it names. A
// test whose program is missing is skipped, and one that runs a program that it has not named fails everywhere, not only
// where the program is missing.

import {
  accessSync,
  chmodSync,
  constants,
  existsSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { basePrograms } from './base-programs.ts';

// The first process of a run makes the folder of links, which ends with it. The others inherit both variables.
process.env.MILLRACE_TEST_PATH ??= process.env.PATH ?? '';
/** Where this computer has its programs. Daemons are in folders that not every user's path has. */
export const systemPath = [
  process.env.MILLRACE_TEST_PATH,
  '/usr/local/sbin',
  '/usr/sbin',
  '/sbin',
].join(delimiter);
process.env.MILLRACE_TEST_LINKS ??= makeLinks();

const base = join(process.env.MILLRACE_TEST_LINKS, 'base');
/** Links to what this process has named. */
const named = join(process.env.MILLRACE_TEST_LINKS, String(process.pid));
process.env.PATH = [named, base].join(delimiter);

function makeLinks(): string {
  const links = mkdtempSync(join(tmpdir(), 'millrace-programs-'));
  process.once('exit', () => rmSync(links, { recursive: true, force: true }));
  // Some tests run others as an ordinary user, whose processes name programs too.
  chmodSync(links, 0o1777);
  mkdirSync(join(links, 'base'));
  for (const name of basePrograms) {
    const found = findProgram(name);
    if (found !== undefined) symlinkSync(found, join(links, 'base', name));
  }
  return links;
}

/** The path of a program of this computer. */
function findProgram(name: string): string | undefined {
  return systemPath
    .split(delimiter)
    .map((folder) => join(folder, name))
    .find(isProgram);
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

/** Lets this process run those of these programs that are here, and returns their names. */
export function use(...names: string[]): string[] {
  return names.filter((name) => {
    const found = findProgram(name);
    if (found === undefined) return false;
    const link = join(named, name);
    mkdirSync(named, { recursive: true });
    if (!existsSync(link)) symlinkSync(found, link);
    return true;
  });
}

/** Lets this process run these programs. Returns why tests that need them are skipped, or false if all are here. */
export function needs(...names: string[]): string | false {
  const found = use(...names);
  const missing = [...new Set(names)].filter((name) => !found.includes(name));
  if (missing.length === 0) return false;
  return skipFor(`${missing.join(', ')} ${missing.length === 1 ? 'is' : 'are'} missing`);
}

/** Returns the reason to skip a test. In CI, where every test must run, it is an error instead. There, a machine that is bare
 * on purpose sets MILLRACE_TEST_BARE. */
export function skipFor(reason: string): string {
  if (process.env.CI === 'true' && process.env.MILLRACE_TEST_BARE === undefined) {
    throw new Error(reason);
  }
  return reason;
}
