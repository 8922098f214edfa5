// Style is a test: who may import whom, that the repository stands alone, and that files stay small.

import assert from 'node:assert';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { describe, test } from 'node:test';

const root = join(import.meta.dirname, '..');
const files = execFileSync('git', ['ls-files', '-co', '--exclude-standard'], {
  cwd: root,
  encoding: 'utf8',
})
  .split('\n')
  .filter((file) => file !== '');
const sources = files.filter((file) => /^(src|test|bench|web)\/.*\.(ts|tsx|js)$/.test(file));

/** What each part of src may import from; itself always. */
const mayImport: Record<string, string[]> = {
  lib: [],
  db: ['lib'],
  config: ['lib', 'cloud/regions.ts', 'inference/builtin-models.ts'],
  accounts: ['db', 'lib'],
  inference: ['accounts', 'db', 'lib'],
  cloud: ['accounts', 'db', 'lib'],
  cli: [
    'config',
    'lib',
    'accounts/schema.ts',
    'accounts/usage/schema.ts',
    'inference/schema.ts',
    'inference/weights/schema.ts',
    'inference/backends/schema.ts',
    'cloud/schema.ts',
    'cloud/hosts/schema.ts',
    'server.ts',
    'package.json',
  ],
};

const partOf = (file: string) => file.split('/')[1] as string;

function importsOf(file: string): string[] {
  const text = readFileSync(join(root, file), 'utf8');
  const paths = [...text.matchAll(/(?:from|import\()\s*'(\.[^']+)'/g)].map(
    ([, path]) => path as string,
  );
  return paths.map((path) => relative(root, resolve(root, dirname(file), path)));
}

/** The first import cycle among these files, as the list of files in it; empty if there is none. */
function findImportCycle(among: string[]): string[] {
  const finished = new Set<string>();
  const follow = (file: string, path: string[]): string[] => {
    if (path.includes(file)) return [...path.slice(path.indexOf(file)), file];
    if (finished.has(file) || !among.includes(file)) return [];
    for (const target of importsOf(file)) {
      const cycle = follow(target, [...path, file]);
      if (cycle.length > 0) return cycle;
    }
    finished.add(file);
    return [];
  };
  return among.map((file) => follow(file, [])).find((cycle) => cycle.length > 0) ?? [];
}

describe('tidy', () => {
  test('each part imports only what it may', () => {
    const wrong: string[] = [];
    for (const file of sources.filter((one) => one.startsWith('src/'))) {
      const allowed = mayImport[partOf(file)];
      if (allowed === undefined) continue;
      for (const target of importsOf(file)) {
        const path = target.replace(/^src\//, '');
        const fine =
          partOf(target) === partOf(file) ||
          allowed.some((one) => path === one || path.startsWith(`${one}/`));
        if (!fine) wrong.push(`${file} imports ${target}`);
      }
    }
    assert.deepEqual(wrong, []);
  });

  test('engines and drivers know their boundary, wire types and lib, not the product', () => {
    const wrong = sources
      .filter((file) => /^src\/(inference\/engines|cloud\/drivers)\//.test(file))
      .flatMap((file) => importsOf(file).map((target) => ({ file, target })))
      .filter(({ target }) => /^src\/(accounts|db|config|app|server)/.test(target))
      .map(({ file, target }) => `${file} imports ${target}`);
    assert.deepEqual(wrong, []);
  });

  test('the dashboard imports only wire schemas from src', () => {
    const wrong = sources
      .filter((file) => file.startsWith('web/src/'))
      .flatMap((file) => importsOf(file).map((target) => ({ file, target })))
      .filter(({ target }) => target.startsWith('src/') && !target.endsWith('/schema.ts'))
      .map(({ file, target }) => `${file} imports ${target}`);
    assert.deepEqual(wrong, []);
  });

  test('the dashboard has no import cycles, not even of types', () => {
    const dashboard = sources.filter((file) => file.startsWith('web/src/'));
    assert.deepEqual(findImportCycle(dashboard), []);
  });

  test('only the composition root and the CLI’s serve start the server', () => {
    const starters = sources.filter(
      (file) => file.startsWith('src/') && importsOf(file).includes('src/server.ts'),
    );
    assert.deepEqual(starters, ['src/cli/serve.ts']);
  });

  test('process.env is read by the configuration and the CLI’s credentials alone', () => {
    const readers = sources.filter(
      (file) =>
        file.startsWith('src/') && /process\.env\b/.test(readFileSync(join(root, file), 'utf8')),
    );
    assert.deepEqual(
      readers.filter((file) => !allowedEnvironment.includes(file)),
      [],
    );
  });

  /** Children are given an environment; that is not reading a setting. */
  const allowedEnvironment = [
    'src/config/load.ts',
    'src/cli/credentials.ts',
    'src/inference/engines/local/model-process.ts',
  ];

  test('the repository stands alone: no machine paths, no registry hosts', () => {
    const marks = [
      ['', 'work', 'shared'].join('/'),
      ['..', 'shared', ''].join('/'),
      ['', 'root', ''].join('/'),
    ];
    const wrong = files
      .filter((file) => !/\.(gguf|png|txt)$/.test(file) && !file.startsWith('model/training/'))
      .filter((file) => {
        const text = readFileSync(join(root, file), 'utf8');
        return (
          marks.some((mark) => text.includes(mark)) ||
          (file === 'package-lock.json' && text.includes('"resolved"'))
        );
      });
    assert.deepEqual(wrong, []);
  });

  test('TypeBox is used for its types alone: its optional members are not ours', () => {
    const users = sources.filter((file) =>
      /^import (?!type\b).*from 'typebox'/m.test(readFileSync(join(root, file), 'utf8')),
    );
    assert.deepEqual(users, []);
  });

  test('every source file opens by saying what it is', () => {
    const mute = sources.filter(
      (file) => !/^(#!.*\n)?(\/\/|\/\*)/.test(readFileSync(join(root, file), 'utf8')),
    );
    assert.deepEqual(mute, []);
  });

  test('no source file grows beyond 400 lines', () => {
    const long = sources
      .filter((file) => file.startsWith('src/'))
      .map((file) => ({ file, lines: readFileSync(join(root, file), 'utf8').split('\n').length }))
      .filter(({ lines }) => lines > 400);
    assert.deepEqual(long, []);
  });
});
