// The file, the environment and the flags become one validated, frozen Config, or a list of problems
// that each name the place and the fix. The only reader of process.env.

import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { Ajv, type ErrorObject } from 'ajv';
import type { TSchema } from 'typebox';
import type * as Yaml from 'yaml';
import { toViolation } from '#lib/schema/validation-error.ts';
import { toReason } from '#lib/start-error.ts';
import { resolveKeys } from './check-models.ts';
import { crossCheck, type PlaceOf } from './cross-check.ts';
import { explain, schemaAt } from './explain.ts';
import { type Config, ConfigSchema, overrides } from './schema.ts';

export class ConfigError extends Error {
  readonly problems: string[];

  constructor(problems: string[]) {
    super(problems.join('\n'));
    this.name = 'ConfigError';
    this.problems = problems;
  }
}

export interface LoadedConfig {
  config: Config;
  /** The file it came from; null when there is none. */
  file: string | null;
  /** MILLRACE_API_KEY: what the first key shall be. */
  presetApiKey: string | null;
}

export type Flags = Record<string, string | undefined>;
type Environment = Record<string, string | undefined>;
type Tree = Record<string, unknown>;

const defaultFile = 'millrace.yaml';

/** Flags are keyed by the setting's path; `config` names the file. */
export function loadConfig(flags: Flags, environment: Environment = process.env): LoadedConfig {
  const named = flags.config ?? environment.MILLRACE_CONFIG;
  if (named !== undefined && !existsSync(named)) {
    throw new ConfigError([`${named}: there is no such file.`]);
  }
  const file = named ?? (existsSync(defaultFile) ? defaultFile : null);
  const source = file === null ? emptySource : readSource(file);
  const tree = withDefaults(ConfigSchema, source.tree) as Tree;
  const places = new Map<string, string>();
  for (const { path, env, flag } of overrides) {
    const fromFlag = flags[path];
    const value = fromFlag ?? environment[env];
    if (value === undefined || value === '') continue;
    const parts = path.split('.');
    places.set(parts.join('/'), fromFlag === undefined ? env : (flag?.split(' ')[0] as string));
    assign(tree, parts, value);
  }
  const placeOf: PlaceOf = (path) => places.get(path.join('/')) ?? source.placeOf(path);
  validate(tree, placeOf);
  const missing = resolveKeys((tree as Config).models, environment, placeOf);
  if (missing.length > 0) throw new ConfigError(missing);
  return {
    config: deepFreeze(tree) as Config,
    file,
    presetApiKey: parsePresetKey(environment.MILLRACE_API_KEY),
  };
}

/** Asked for at MILLRACE_LOG_LEVEL=debug: stacks of what fails, beside the sentence. */
export function wantsDetails(environment: Environment = process.env): boolean {
  return ['debug', 'trace'].includes(environment.MILLRACE_LOG_LEVEL ?? '');
}

interface Source {
  tree: Tree;
  placeOf: PlaceOf;
}

const emptySource: Source = { tree: {}, placeOf: () => 'settings' };

/** Most starts have no file; only those that do pay for the parser. */
const loadYaml = () => createRequire(import.meta.url)('yaml') as typeof Yaml;

function readSource(file: string): Source {
  const { LineCounter, parseDocument, isMap, isScalar, isSeq } = loadYaml();
  const lines = new LineCounter();
  const document = parseDocument(readText(file), { lineCounter: lines });
  if (document.errors.length > 0) {
    throw new ConfigError(
      document.errors.map((error) => {
        const { line } = lines.linePos(error.pos[0]);
        return `${file}:${line}: ${error.message.split('\n')[0]?.replace(/ at line \d+.*$/, '')}`;
      }),
    );
  }
  const tree: unknown = document.toJS() ?? {};
  if (typeof tree !== 'object' || tree === null || Array.isArray(tree)) {
    throw new ConfigError([
      `${file}:1: the file must hold settings such as "server:", not a list or a text.`,
    ]);
  }

  /** Where the key stands, or the nearest parent of it that is in the file. */
  function keyOffset(path: readonly (string | number)[]): number | null {
    let found: number | null = null;
    let current: unknown = document.contents;
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

  return {
    tree: tree as Tree,
    placeOf(path) {
      const offset = keyOffset(path);
      return offset === null ? file : `${file}:${lines.linePos(offset).line}`;
    },
  };
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new ConfigError([`${file}: can't be read: ${toReason(error)}.`]);
  }
}

/** Also inside of lists and maps: what an entry does not say is at its default. */
export function withDefaults(schema: TSchema, value: unknown): unknown {
  const parts = schema as SchemaParts;
  const { properties, default: fallback, items, additionalProperties, required } = parts;
  if (properties === undefined) {
    if (value === undefined) return fallback;
    if (items !== undefined && Array.isArray(value)) {
      return value.map((item) => withDefaults(items, item));
    }
    if (typeof additionalProperties !== 'object' || !isTree(value)) return value;
    const entries = Object.entries(value);
    return Object.fromEntries(
      entries.map(([name, item]) => [name, withDefaults(additionalProperties, item)]),
    );
  }
  const mayBeNull = Array.isArray(parts.type) && parts.type.includes('null');
  if (value !== undefined && !isTree(value) && (value !== null || mayBeNull)) return value;
  const given = (value ?? {}) as Tree;
  const filled: Tree = { ...given };
  for (const [name, member] of Object.entries(properties)) {
    if (given[name] === undefined && !required?.includes(name)) continue;
    const full = withDefaults(member, given[name]);
    if (full !== undefined) filled[name] = full;
  }
  return filled;
}

interface SchemaParts {
  type?: unknown;
  required?: string[];
  properties?: Record<string, TSchema>;
  default?: unknown;
  items?: TSchema;
  additionalProperties?: TSchema | boolean;
}

const isTree = (value: unknown): value is Tree =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

function assign(tree: Tree, path: readonly string[], text: string): void {
  const parent = path.slice(0, -1).reduce<unknown>((node, part) => (node as Tree)[part], tree);
  // A file with a text where a section belongs: validation says so.
  if (typeof parent !== 'object' || parent === null) return;
  const type = schemaAt(path)?.type;
  const value = type === 'integer' || type === 'number' ? toNumber(text) : text;
  Object.assign(parent, { [path.at(-1) as string]: value });
}

const toNumber = (text: string) => (/^-?\d+(\.\d+)?$/.test(text) ? Number(text) : text);

function validate(tree: Tree, placeOf: PlaceOf): void {
  const check = new Ajv({ allErrors: true, strict: false, allowUnionTypes: true }).compile(
    ConfigSchema,
  );
  if (check(tree)) {
    const problems = crossCheck(tree as Config, placeOf);
    if (problems.length > 0) throw new ConfigError(problems);
    return;
  }
  // That a name is wrong is said by what is wrong with it.
  const errors = (check.errors ?? []).filter(({ keyword }) => keyword !== 'propertyNames');
  throw new ConfigError(
    errors.map((error: ErrorObject) => {
      const violation = toViolation([error]);
      return `${placeOf(violation.path)}: ${explain(violation, tree)}`;
    }),
  );
}

function parsePresetKey(value: string | undefined): string | null {
  if (value === undefined || value === '') return null;
  if (!/^[\x21-\x39\x3b-\x7e]{24,256}$/.test(value)) {
    throw new ConfigError([
      'MILLRACE_API_KEY: must be 24 to 256 printable characters without spaces or colons, such as a key made by Millrace.',
    ]);
  }
  return value;
}

function deepFreeze(value: unknown): unknown {
  if (typeof value === 'object' && value !== null) {
    for (const member of Object.values(value)) deepFreeze(member);
    Object.freeze(value);
  }
  return value;
}
