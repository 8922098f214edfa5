// Reads the YAML file and remembers on which line each setting is.

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type * as Yaml from 'yaml';
import { toReason } from '#lib/start-error.ts';
import type { Tree } from './defaults.ts';
import { ConfigError } from './error.ts';
import type { PlaceOf } from './place.ts';

export interface Source {
  tree: Tree;
  placeOf: PlaceOf;
}

/** One wrong line makes the parser complain about lines that follow. The first ones lead to it. */
const maxProblems = 5;
/** The parser quotes all of an unexpected scalar. */
const maxMessageLength = 200;
const cut = (message: string) =>
  message.length > maxMessageLength ? `${message.slice(0, maxMessageLength)}…` : message;

/** Throws a ConfigError if the file can't be read or is not a YAML map. */
export function readYamlFile(file: string): Source {
  const yaml = loadYaml();
  const lines = new yaml.LineCounter();
  const document = yaml.parseDocument(readText(file), { lineCounter: lines });
  if (document.errors.length > 0) {
    const problems = document.errors.map((error) => {
      const { line } = lines.linePos(error.pos[0]);
      const message = error.message.split('\n')[0]?.replace(/ at line \d+.*$/, '') ?? '';
      return `${file}:${line}: ${cut(message)}`;
    });
    throw new ConfigError(problems.slice(0, maxProblems));
  }
  const tree: unknown = document.toJS() ?? {};
  if (typeof tree !== 'object' || tree === null || Array.isArray(tree)) {
    throw new ConfigError([
      `${file}:1: the file must contain settings such as "server:", not a list or a string.`,
    ]);
  }
  return {
    tree: tree as Tree,
    placeOf(path) {
      const offset = keyOffset(yaml, document.contents, path);
      return offset === null ? file : `${file}:${lines.linePos(offset).line}`;
    },
  };
}

/** Loaded on demand: most starts have no file and need no parser. */
const loadYaml = () => createRequire(import.meta.url)('yaml') as typeof Yaml;

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new ConfigError([`${file}: can't read the file: ${toReason(error)}.`]);
  }
}

/** Offset of the key, or of its nearest parent in the file; null if neither is in it. */
function keyOffset(
  { isMap, isScalar, isSeq }: typeof Yaml,
  contents: unknown,
  path: readonly (string | number)[],
): number | null {
  let found: number | null = null;
  let current: unknown = contents;
  for (const part of path) {
    if (isSeq(current)) {
      current = current.items[Number(part)];
      if (isMap(current) && current.range) found = current.range[0];
      continue;
    }
    if (!isMap(current)) break;
    const pair = current.items.find(
      ({ key }) => isScalar(key) && String(key.value) === String(part),
    );
    if (pair === undefined) break;
    if (isScalar(pair.key) && pair.key.range) found = pair.key.range[0];
    current = pair.value;
  }
  return found;
}
