// Turns the file, the environment and the flags into one validated, frozen Config, or into a list of problems
// that each name the place and the fix. Nothing else in the server reads settings from process.env.

import { existsSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';
import { Ajv, type ErrorObject } from 'ajv';
import { toViolation } from '#lib/schema/validation-error.ts';
import { checkConfig } from './check.ts';
import { resolveEnvironments } from './check-deployments.ts';
import { resolveApiKeys } from './check-models.ts';
import { type Tree, withDefaults } from './defaults.ts';
import type { Environment } from './environment.ts';
import { ConfigError } from './error.ts';
import { explain, schemaAt } from './explain.ts';
import { overrides } from './overrides.ts';
import type { PlaceOf } from './place.ts';
import { type Config, ConfigSchema } from './schema.ts';
import { readYamlFile, type Source } from './yaml-file.ts';

export interface LoadedConfig {
  config: Config;
  /** The file it was read from; null if there is none. */
  file: string | null;
  /** MILLRACE_API_KEY: the value of the first API key; null to generate one. */
  presetApiKey: string | null;
}

export type Flags = Record<string, string | undefined>;

const defaultFile = 'millrace.yaml';
const emptySource: Source = { tree: {}, placeOf: () => 'settings' };

/** Flags are keyed by the path of their setting; `config` names the file. Throws a ConfigError. */
export function loadConfig(flags: Flags, environment: Environment = process.env): LoadedConfig {
  const named = flags.config ?? environment.MILLRACE_CONFIG;
  if (named !== undefined && !existsSync(named)) {
    throw new ConfigError([`${named}: there is no such file.`]);
  }
  const file = named ?? (existsSync(defaultFile) ? defaultFile : null);
  const source = file === null ? emptySource : readYamlFile(file);
  const tree = withDefaults(ConfigSchema, source.tree) as Tree;
  const places = applyOverrides(tree, flags, environment);
  const placeOf: PlaceOf = (path) => places.get(path.join('/')) ?? source.placeOf(path);
  validate(tree, placeOf);
  const { models, deployments } = tree as Config;
  const missing = [
    ...resolveApiKeys(models, environment, placeOf),
    ...resolveEnvironments(deployments, environment, placeOf),
  ];
  if (missing.length > 0) throw new ConfigError(missing);
  return {
    config: deepFreeze(tree) as Config,
    file,
    presetApiKey: parsePresetKey(environment.MILLRACE_API_KEY),
  };
}

/** Writes flags and variables into the tree. Returns the place of each by its path. */
function applyOverrides(tree: Tree, flags: Flags, environment: Environment): Map<string, string> {
  const places = new Map<string, string>();
  for (const { path, env, flag } of overrides) {
    const fromFlag = flags[path];
    const value = fromFlag ?? environment[env];
    if (value === undefined || value === '') continue;
    const parts = path.split('.');
    places.set(parts.join('/'), fromFlag === undefined ? env : (flag?.split(' ')[0] as string));
    assign(tree, parts, value);
  }
  return places;
}

function assign(tree: Tree, path: readonly string[], text: string): void {
  const parent = path.slice(0, -1).reduce<unknown>((node, part) => (node as Tree)[part], tree);
  // The file has a value where a section belongs. Validation reports it.
  if (typeof parent !== 'object' || parent === null) return;
  // A list if null is allowed too.
  const types = [schemaAt(path)?.type].flat();
  const isNumber = types.includes('integer') || types.includes('number');
  const value = isNumber ? toNumber(text) : text;
  Object.assign(parent, { [path.at(-1) as string]: value });
}

const toNumber = (text: string) => (/^-?\d+(\.\d+)?$/.test(text) ? Number(text) : text);

/** The schema is our own. To check and optimise it would take 0.15 s at every start. */
const quickly = { meta: false, validateSchema: false, code: { optimize: false } } as const;

function validate(tree: Tree, placeOf: PlaceOf): void {
  const changed = findChanged(tree);
  const check = new Ajv({ ...quickly, allErrors: true, strict: false }).compile(schemaOf(changed));
  if (check(changed)) {
    const problems = checkConfig(tree as Config, placeOf);
    if (problems.length > 0) throw new ConfigError(problems);
    return;
  }
  // An invalid name causes two errors. The other one says what is wrong with it.
  const errors = (check.errors ?? []).filter(({ keyword }) => keyword !== 'propertyNames');
  throw new ConfigError(
    errors.map((error: ErrorObject) => {
      const violation = toViolation([error]);
      return `${placeOf(violation.path)}: ${explain(violation, tree)}`;
    }),
  );
}

/**
 * The sections that differ from their defaults. The others are valid: to check them too would take
 * 0.1 s at every start.
 */
function findChanged(tree: Tree): Tree {
  const defaults = withDefaults(ConfigSchema, {}) as Tree;
  const changed = Object.entries(tree).filter(
    ([name, section]) => !isDeepStrictEqual(section, defaults[name]),
  );
  return Object.fromEntries(changed);
}

/** The schema of these sections and no others. */
function schemaOf(sections: Tree): object {
  const properties = Object.entries(ConfigSchema.properties).filter(([name]) => name in sections);
  return {
    ...ConfigSchema,
    properties: Object.fromEntries(properties),
    required: properties.map(([name]) => name),
  };
}

function parsePresetKey(value: string | undefined): string | null {
  if (value === undefined || value === '') return null;
  if (!/^[\x21-\x39\x3b-\x7e]{24,256}$/.test(value)) {
    throw new ConfigError([
      'MILLRACE_API_KEY: must be 24 to 256 printable characters without spaces or colons, such as a key that Millrace created.',
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
