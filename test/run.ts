// Runs the tests: `npm test`, `test:quick` and `test:soak` in groups, `test:files` the given files with a process each.
// For 300 files, a process each would cost 1.2 s of CPU time a file, most of it for the same imports. The files of a
// folder share a process instead, and with it the modules of the server and the browser.

import { spawn } from 'node:child_process';
import { globSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { chooseQuick } from './quick.ts';

const root = join(import.meta.dirname, '..');

/** Servers that a file started live until its group ends, and long groups would leave a processor idle at the end. */
const maxFiles = 6;

/** Their files depend on what their own process has inherited, mounted or opened: some fail after another one. */
const alone = 'test/cloud/drivers/sandbox';

const options = [
  '--min-semi-space-size=16',
  '--import=./test/support/programs.ts',
  '--test',
  '--test-global-setup=test/support/global-setup.ts',
  '--test-timeout=900000',
];

const [form = 'all', ...given] = process.argv.slice(2);
const find = (pattern: string) => globSync(pattern, { cwd: root }).sort();

switch (form) {
  case 'files':
    run(given, {});
    break;
  case 'quick':
    runInGroups(chooseQuick(find('test/**/*.test.ts')), { MILLRACE_TEST_DATABASES: 'sqlite' });
    break;
  case 'all':
    runInGroups(find('test/**/*.test.ts'), {});
    break;
  case 'soak':
    runInGroups(find('test/**/*.{test,soak}.ts'), { MILLRACE_TEST_SOAK: '1' });
    break;
  default:
    throw new Error(`The form must be files, quick, all or soak, got ${form}.`);
}

/**
 * Each group is an entry file that imports its tests. With `await import(…)` the tests of one file could end before those of
 * the next are known, and the hooks after all tests would run too early.
 */
function runInGroups(files: readonly string[], environment: Record<string, string>): void {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-groups-'));
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  const entries = toGroups(files).map((group, index) => {
    const entry = join(folder, `${index}.mjs`);
    const lines = group.map((file) => `import '${pathToFileURL(join(root, file))}';\n`);
    writeFileSync(entry, lines.join(''));
    return entry;
  });
  run(['--test-concurrency=2', ...given, ...entries], environment);
}

function toGroups(files: readonly string[]): string[][] {
  const folders = Map.groupBy(files, (file) => (dirname(file) === alone ? file : dirname(file)));
  return [...folders.values()].flatMap((inFolder) => {
    const count = Math.ceil(inFolder.length / maxFiles);
    return Array.from({ length: count }, (_, index) =>
      inFolder.filter((_, at) => at % count === index),
    );
  });
}

function run(parameters: readonly string[], environment: Record<string, string>): void {
  const child = spawn(process.execPath, [...options, ...parameters], {
    cwd: root,
    stdio: 'inherit',
    env: { ...process.env, ...environment },
  });
  child.once('exit', (code) => {
    process.exitCode = code ?? 1;
  });
}
