// Prints the test files that are skipped, in whole or in part, where a program is missing: those that import
// test/support/programs.ts, also through other modules. `.ci/run` runs them on a machine that has none of the programs.

import { globSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';

const root = join(import.meta.dirname, '..');
const files = globSync('test/**/*.ts', { cwd: root });

/** The files of `test` that a file imports. */
function importsOf(file: string): string[] {
  const specifiers = readFileSync(join(root, file), 'utf8').matchAll(
    /(?:from|import\(|import)\s*'([.#][^']+)'/g,
  );
  return [...specifiers].map(([, specifier = '']) =>
    specifier.startsWith('#')
      ? specifier.slice(1)
      : relative(root, join(root, dirname(file), specifier)),
  );
}

const graph = files.map((file) => ({ file, imports: importsOf(file) }));
const found = new Set(['test/support/programs.ts']);
// A set that grows while it is read is read to its end.
for (const target of found) {
  for (const { file, imports } of graph) if (imports.includes(target)) found.add(file);
}
console.log(
  [...found]
    .filter((file) => file.endsWith('.test.ts'))
    .sort()
    .join('\n'),
);
