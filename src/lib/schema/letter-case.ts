// A keyword of our validators: a member that differs from a known one only by letter case is
// refused. Servers written in Go take `Model` for `model`, so a member that was not understood here
// could mean something there.

import type { KeywordDefinition } from 'ajv';

/**
 * Under this key, the options of an open object name members that its schema does not describe, but that mean something
 * here. Objects in such a member are checked by the same names. JSON has no symbols, so the API reference shows none.
 */
export const unlisted = Symbol('unlisted');

interface OpenSchema {
  readonly properties?: Readonly<Record<string, unknown>>;
  readonly additionalProperties?: unknown;
  readonly [unlisted]?: readonly string[];
}

interface Names {
  readonly exact: ReadonlySet<string>;
  readonly byFolded: ReadonlyMap<string, string>;
  /** The unlisted ones among them; undefined if there are none. */
  readonly unlisted?: Names;
}

const keyword = 'letterCase';

/** Returns the schema with the keyword on every open object. */
export function withLetterCase(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(withLetterCase);
  if (typeof schema !== 'object' || schema === null) return schema;
  const copy: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(schema)) copy[key] = withLetterCase(value);
  const { properties, additionalProperties, [unlisted]: others } = schema as OpenSchema;
  if (properties === undefined || additionalProperties !== true) return copy;
  const inner = others === undefined ? undefined : toNames(others);
  const names = toNames([...Object.keys(properties), ...(others ?? [])]);
  copy[keyword] = inner === undefined ? names : { ...names, unlisted: inner };
  return copy;
}

export const letterCase: KeywordDefinition = {
  keyword,
  type: 'object',
  // `Model` alone must not be reported as a missing `model`.
  before: 'required',
  errors: true,
  compile(names: Names) {
    const check: CheckNames = (value) => {
      const found = findOther(value, names);
      check.errors = found === undefined ? [] : [{ keyword, params: found }];
      return found === undefined;
    };
    return check;
  },
};

interface CheckNames {
  (value: Record<string, unknown>): boolean;
  errors?: object[];
}

interface Other {
  /** The path to the member, from the object that has the keyword. */
  readonly given: readonly string[];
  readonly known: string;
}

function findOther(value: Record<string, unknown>, names: Names): Other | undefined {
  for (const name in value) {
    const known = names.exact.has(name) ? name : names.byFolded.get(fold(name));
    if (known === undefined) continue;
    if (known !== name) return { given: [name], known };
    const inner = names.unlisted?.exact.has(name) ? value[name] : null;
    if (typeof inner !== 'object' || inner === null) continue;
    const found = findOther(inner as Record<string, unknown>, names.unlisted as Names);
    if (found !== undefined) return { ...found, given: [name, ...found.given] };
  }
  return undefined;
}

const toNames = (names: readonly string[]): Names => ({
  exact: new Set(names),
  byFolded: new Map(names.map((name) => [fold(name), name])),
});

/** Through upper case, so that `ſ` and the Kelvin sign become `s` and `k`, as Go reads them. */
const fold = (text: string) => text.toUpperCase().toLowerCase();
