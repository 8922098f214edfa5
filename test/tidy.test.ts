// Style is a test: the layering of imports, that the repository stands alone, and that files stay small.

import assert from 'node:assert';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { describe, test } from 'node:test';
import { sharedSources } from '#server/dashboard-build.ts';

const root = join(import.meta.dirname, '..');
const files = execFileSync('git', ['ls-files', '-co', '--exclude-standard'], {
  cwd: root,
  encoding: 'utf8',
})
  .split('\n')
  .filter((file) => file !== '');
const sources = files.filter((file) => /^(src|test|bench|tools|web)\/.*\.(ts|tsx|js)$/.test(file));

/** What each part of src may import from; itself always. */
const mayImport: Record<string, string[]> = {
  lib: [],
  http: ['lib'],
  db: ['lib'],
  config: [
    'lib',
    'cloud/regions.ts',
    'deployments/ground/schema.ts',
    'deployments/ground/spec.ts',
    'inference/engines/upstream/servers.ts',
    'inference/models/builtin-models.ts',
  ],
  backup: ['db', 'lib'],
  gpu: ['lib'],
  accounts: ['db', 'http', 'lib'],
  inference: ['accounts', 'db', 'http', 'lib'],
  cloud: ['accounts', 'db', 'http', 'lib'],
  deployments: ['accounts', 'cloud', 'db', 'http', 'inference', 'lib'],
  cli: [
    'config',
    'backup',
    'gpu',
    'lib',
    'server/start.ts',
    'server/reset-link.ts',
    'server/doctor.ts',
    'deployments/engines/builtin/main.ts',
    'package.json',
  ],
};

/** Wire types: the CLI and the dashboard may import them from every part. */
const isSchema = (path: string) => path.endsWith('/schema.ts');

/** Files of src that others import; programs that run as a process of their own may keep state. */
const isModule = (file: string) =>
  file.startsWith('src/') && !/sandbox\/agent\/|local\/child\/main\.ts$/.test(file);

const partOf = (file: string) => file.split('/')[1] as string;
const textOf = (file: string) => readFileSync(join(root, file), 'utf8');

/** Every specifier in a file that names another file of ours, as it is written. */
function specifiersOf(file: string): string[] {
  const found = textOf(file).matchAll(/(?:from|import\(|import)\s*'([.#][^']+)'/g);
  return [...found].map(([, specifier]) => specifier as string);
}

function toPath(file: string, specifier: string): string {
  if (specifier.startsWith('#test/')) return specifier.slice(1);
  if (specifier.startsWith('#')) return `src/${specifier.slice(1)}`;
  return relative(root, resolve(root, dirname(file), specifier));
}

const importsOf = (file: string) => specifiersOf(file).map((one) => toPath(file, one));

/** `file imports target` for every import that breaks a rule. */
const importsThat = (breaks: (file: string, target: string) => boolean) =>
  sources.flatMap((file) =>
    importsOf(file)
      .filter((target) => breaks(file, target))
      .map((target) => `${file} imports ${target}`),
  );

/**
 * Top-level functions and methods of a formatted file that are longer than `maxLines`, as `file name`. What is
 * nested in them counts as part of them.
 */
function longFunctionsOf(file: string, maxLines: number): string[] {
  const lines = textOf(file).split('\n');
  const opening =
    /^( {2})?(?:export |default |async |static |readonly )*(?:function\*? |const (?=\w+ = (?:async )?(?:<.*>)?\()|\*)?(#?\w+)(?: = (?:async )?)?(?:<.*>)?\((?:.*[({])?$/;
  return lines.flatMap((line, from) => {
    const [, indent = '', name = ''] = opening.exec(line) ?? [];
    if (name === '' || /^ *(?:if|for|while|switch|return|describe|test)\b/.test(line)) return [];
    const length = lines.slice(from).findIndex((one) => isEnd(one, indent)) + 1;
    return length > maxLines ? [`${file} ${name}`] : [];
  });
}

/** True for the line that closes a block opened at this indentation; `): Type {` only ends its parameters. */
const isEnd = (line: string, indent: string) =>
  line.startsWith(indent) && /^[})]/.test(line.slice(indent.length)) && !/[({]$/.test(line);

/** The first import cycle found from a file, as a list of files; undefined if there is none. */
function findCycle(graph: ReadonlyMap<string, string[]>): string[] | undefined {
  const done = new Set<string>();
  const visit = (file: string, path: string[]): string[] | undefined => {
    if (path.includes(file)) return [...path.slice(path.indexOf(file)), file];
    if (done.has(file)) return undefined;
    for (const next of graph.get(file) ?? []) {
      const cycle = visit(next, [...path, file]);
      if (cycle !== undefined) return cycle;
    }
    done.add(file);
    return undefined;
  };
  for (const file of graph.keys()) {
    const cycle = visit(file, []);
    if (cycle !== undefined) return cycle;
  }
  return undefined;
}

describe('tidy', () => {
  test('each part imports only what it may', () => {
    const wrong = importsThat((file, target) => {
      const allowed = file.startsWith('src/') ? mayImport[partOf(file)] : undefined;
      if (allowed === undefined || partOf(target) === partOf(file)) return false;
      const path = target.replace(/^src\//, '');
      if (partOf(file) === 'cli' && isSchema(target)) return false;
      return !allowed.some((one) => path === one || path.startsWith(`${one}/`));
    });
    assert.deepEqual(wrong, []);
  });

  test('engines and drivers know their boundary, wire types, http and lib, not the product', () => {
    const wrong = importsThat(
      (file, target) =>
        /^src\/(inference\/engines|cloud\/drivers)\//.test(file) &&
        /^src\/(accounts|db|config|server)/.test(target),
    );
    assert.deepEqual(wrong, []);
  });

  test('no driver imports another driver, and no engine another engine', () => {
    const familyOf = (path: string) =>
      /^src\/(?:inference\/engines|cloud\/drivers)\/([^/]+)\//.exec(path)?.[1];
    const wrong = importsThat((file, target) => {
      const [from, to] = [familyOf(file), familyOf(target)];
      return from !== undefined && to !== undefined && from !== to && to !== 'shared';
    });
    assert.deepEqual(wrong, []);
  });

  test('the two processes of a local model share only their protocol', () => {
    const sideOf = (path: string) =>
      /^src\/inference\/engines\/local\/(parent|child)\//.exec(path)?.[1];
    const wrong = importsThat((file, target) => {
      const [from, to] = [sideOf(file), sideOf(target)];
      return from !== undefined && to !== undefined && from !== to;
    });
    assert.deepEqual(wrong, []);
  });

  test('the dashboard imports only wire types and what its build counts as a source', () => {
    const wrong = importsThat(
      (file, target) =>
        file.startsWith('web/src/') &&
        target.startsWith('src/') &&
        !isSchema(target) &&
        !sharedSources.includes(target),
    );
    assert.deepEqual(wrong, []);
  });

  test('no import cycles, not even of types', () => {
    const graph = new Map(sources.map((file) => [file, importsOf(file)]));
    assert.deepEqual(findCycle(graph), undefined);
  });

  test('what knows nothing of the product imports nothing of it: it could be published', () => {
    const wrong = ['src/http/client/', 'src/inference/engines/local/grammar/'].flatMap((folder) =>
      sources
        .filter((file) => file.startsWith(folder))
        .flatMap((file) => importsOf(file).filter((target) => !target.startsWith(folder))),
    );
    assert.deepEqual(wrong, []);
  });

  test('deployments: settings know no decision, and neither knows engines or what moves replicas', () => {
    const known: Record<string, string[]> = {
      ground: ['ground'],
      decision: ['ground', 'decision'],
      engines: ['ground', 'engines', 'stats'],
    };
    const folderOf = (path: string) => /^src\/deployments\/(\w+)\//.exec(path)?.[1];
    const wrong = importsThat((file, target) => {
      const allowed = known[folderOf(file) ?? ''];
      return (
        allowed !== undefined &&
        target.startsWith('src/deployments/') &&
        !allowed.includes(folderOf(target) ?? '')
      );
    });
    assert.deepEqual(wrong, []);
  });

  test('serving knows no inference API', () => {
    const wrong = sources
      .filter((file) => file.startsWith('src/inference/serving/'))
      .filter((file) => importsOf(file).some((target) => target.startsWith('src/inference/apis/')));
    assert.deepEqual(wrong, []);
  });

  test('imports across folders are by #path, so that moving a file breaks nothing', () => {
    const wrong = sources
      .filter((file) => /^(src|test)\//.test(file) && !file.includes('/sandbox/agent/'))
      .flatMap((file) => specifiersOf(file).map((specifier) => `${file} imports ${specifier}`))
      .filter(
        (line) =>
          /imports \.(\.|\/[^/]+\/)/.test(line) && !/\/(web|tools)\/|package\.json/.test(line),
      );
    assert.deepEqual(wrong, []);
  });

  test('no module keeps state: what lives is created by a function', () => {
    const mutable =
      /^(?:export )?(?:let|var) |^(?:export )?const \w+(?:: [^=]+)? = (?:new (?:Map|Set|WeakMap|WeakSet)(?:<.*>)?\(\)|\[\]|\{\});/m;
    const wrong = sources.filter((file) => isModule(file) && mutable.test(textOf(file)));
    assert.deepEqual(wrong, []);
  });

  test('no test sleeps: it waits for a condition or turns a clock', () => {
    const sleeps =
      /setTimeout\b[^;\n]*from 'node:timers\/promises'|new Promise(?:<\w+>)?\(\s*\(?\w+\)? =>\s*\{?\s*(?:void )?setTimeout\(|scheduler\.wait\(|Atomics\.wait\(/;
    const wrong = sources.filter(
      (file) => /^test\/(?!support\/|tidy)/.test(file) && sleeps.test(textOf(file)),
    );
    assert.deepEqual(
      wrong.filter((file) => !onRealClocks.includes(file)),
      [],
    );
  });

  /** Suites that wait for what they can't set: Redis' own clock, a socket's buffers, the length of an outage. */
  const onRealClocks = [
    'test/accounts/limits/replicas.test.ts',
    'test/attack/outage.ts',
    'test/inference/engines/upstream/upstream.test.ts',
  ];

  test('only the CLI’s serve starts the server', () => {
    const starters = sources.filter(
      (file) => file.startsWith('src/') && importsOf(file).includes('src/server/start.ts'),
    );
    assert.deepEqual(starters, ['src/cli/server/serve.ts']);
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

  /** Children are given an environment, and one sets its own for CUDA; that is not reading a setting. */
  const allowedEnvironment = [
    'src/config/environment.ts',
    'src/config/load.ts',
    'src/cli/credentials.ts',
    'src/inference/engines/local/parent/model-process.ts',
    'src/inference/engines/local/child/open-model.ts',
    // In the text of examples.
    'src/server/openapi/code-samples.ts',
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

  test('node:http is imported for its types alone, because its values load undici', () => {
    const users = sources.filter(
      (file) =>
        file.startsWith('src/') && /^import (?!type\b)[^;]*from 'node:http'/m.test(textOf(file)),
    );
    assert.deepEqual(users, []);
  });

  test('every source file opens by saying what it is', () => {
    const mute = sources.filter(
      (file) => !/^(#!.*\n)?(\/\/|\/\*)/.test(readFileSync(join(root, file), 'utf8')),
    );
    assert.deepEqual(mute, []);
  });

  test('no comment line is longer than 120 columns', () => {
    const long = sources
      .filter((file) => file.startsWith('src/') && !file.startsWith('src/deployments/'))
      .flatMap((file) =>
        textOf(file)
          .split('\n')
          .filter((line) => /^ *(\/\/|\*|\/\*\*) /.test(line) && line.length > 120)
          .map((line) => `${file}: ${line}`),
      );
    assert.deepEqual(long, []);
  });

  test('no function is longer than 70 lines', () => {
    const long = sources
      .filter((file) => file.startsWith('src/') && !file.startsWith('src/db/migrations/'))
      .flatMap((file) => longFunctionsOf(file, 70));
    assert.deepEqual(long, []);
  });

  test('no source file grows beyond 400 lines', () => {
    const long = sources
      .filter((file) => file.startsWith('src/'))
      .map((file) => ({ file, lines: readFileSync(join(root, file), 'utf8').split('\n').length }))
      .filter(({ lines }) => lines > 400);
    assert.deepEqual(long, []);
  });

  test('no folder holds more than 16 source files, except migrations', () => {
    const folders = Map.groupBy(
      sources.filter((file) => file.startsWith('src/')),
      (file) => dirname(file),
    );
    const full = [...folders]
      .filter(([folder, files]) => folder !== 'src/db/migrations' && files.length > 16)
      .map(([folder, files]) => `${folder}: ${files.length}`);
    assert.deepEqual(full, []);
  });
});
