// Expands a schema to its constraints. Every keyword is read here. An unknown one is refused by
// name, because ignoring it would let output through that the client's own validator rejects.

import { createPatterns, type Patterns } from '#inference/engines/local/grammar/regex/pattern.ts';
import type { Spend } from '#inference/engines/local/grammar/work-budget.ts';
import { type CacheKeys, createCacheKeys } from './cache-keys.ts';
import type { SchemaDocument } from './document.ts';
import { readKeywords } from './keywords.ts';
import {
  type Conjunction,
  type Exclusion,
  intersectConstraints,
  type Located,
  type TypeConstraint,
  unconstrained,
} from './type-constraints.ts';
import { join, UnsupportedSchema } from './unsupported-schema.ts';
import { type MatchingContext, matches } from './value-matching.ts';

const maxPairs = 100_000;
const maxConstraints = 2000;

/** Schemas within schemas about one value. A chain of references could be as long as the document. */
const maxNesting = 250;

export interface SchemaExpander extends CacheKeys {
  /** The alternatives that satisfy all of these schemas; empty if nothing can. */
  expand(conjunction: Conjunction): readonly TypeConstraint[];
}

interface Expansion extends MatchingContext, CacheKeys {
  readonly document: SchemaDocument;
  readonly patterns: Patterns;
  /** The constraints of each schema expanded so far. */
  readonly bySchema: Map<object, readonly TypeConstraint[]>;
  /** The schemas being expanded, to find one that refers to itself. */
  readonly open: Set<object>;
}

export function createSchemaExpander(document: SchemaDocument, spend: Spend): SchemaExpander {
  const byKey = new Map<string, readonly TypeConstraint[]>();
  const keys = createCacheKeys();
  const expansion: Expansion = {
    ...keys,
    document,
    spend,
    patterns: createPatterns(spend),
    bySchema: new Map(),
    open: new Set(),
    expand(conjunction) {
      const key = keys.conjunctionKey(conjunction);
      const constraints = byKey.get(key) ?? expandAll(expansion, conjunction);
      byKey.set(key, constraints);
      return constraints;
    },
  };
  return { ...keys, expand: expansion.expand };
}

function expandAll(expansion: Expansion, conjunction: Conjunction): readonly TypeConstraint[] {
  return conjunction.reduce<readonly TypeConstraint[]>(
    (all, located) => intersect(expansion, all, expandOne(expansion, located), located),
    Object.values(unconstrained),
  );
}

function expandOne(expansion: Expansion, { schema, path }: Located): readonly TypeConstraint[] {
  const { bySchema, open } = expansion;
  if (schema === true) return Object.values(unconstrained);
  if (schema === false) return [];
  if (typeof schema !== 'object' || schema === null || Array.isArray(schema)) {
    throw new UnsupportedSchema(path, '', 'is not a schema');
  }
  const known = bySchema.get(schema);
  if (known) return known;
  if (open.size === maxNesting) {
    throw new UnsupportedSchema(path, '', 'is nested too deeply');
  }
  if (open.has(schema)) {
    throw new UnsupportedSchema(path, '$ref', 'refers to itself without end');
  }
  open.add(schema);
  const constraints = combine(expansion, schema as Record<string, unknown>, path);
  open.delete(schema);
  bySchema.set(schema, constraints);
  return constraints;
}

function combine(
  expansion: Expansion,
  schema: Record<string, unknown>,
  path: string,
): readonly TypeConstraint[] {
  let constraints: readonly TypeConstraint[] = readKeywords(schema, path, expansion.patterns);
  const narrow = (other: readonly TypeConstraint[], keyword: string) => {
    constraints = intersect(expansion, constraints, other, { path, keyword });
  };
  const branches = (keyword: string) =>
    list(schema, keyword, path).map((branch, index) =>
      expandOne(expansion, { schema: branch, path: join(join(path, keyword), index) }),
    );
  if ('const' in schema) narrow([constant(schema.const)], 'const');
  if ('enum' in schema) narrow(list(schema, 'enum', path).map(constant), 'enum');
  if ('$ref' in schema) {
    narrow(expandOne(expansion, expansion.document.resolve(schema.$ref, path)), '$ref');
  }
  if ('allOf' in schema) for (const branch of branches('allOf')) narrow(branch, 'allOf');
  if ('anyOf' in schema) narrow(unite(expansion, branches('anyOf').flat()), 'anyOf');
  if ('oneOf' in schema) narrow(exclusive(branches('oneOf'), path), 'oneOf');
  if (constraints.length > maxConstraints) {
    throw new UnsupportedSchema(path, '', 'has too many alternatives');
  }
  return constraints;
}

function intersect(
  expansion: Expansion,
  a: readonly TypeConstraint[],
  b: readonly TypeConstraint[],
  { path, keyword = '' }: { path: string; keyword?: string },
): readonly TypeConstraint[] {
  if (a.length * b.length > maxPairs) {
    throw new UnsupportedSchema(path, keyword, 'has too many combinations');
  }
  const both: TypeConstraint[] = [];
  // The branches lead, so that alternatives come in the order in which the schema lists them.
  for (const other of b) {
    for (const one of a) {
      if (one.type === 'const' && !matches(one.value, other, expansion)) continue;
      if (other.type === 'const' && !matches(other.value, one, expansion)) continue;
      const constraint = intersectConstraints(one, other, expansion.spend);
      if (constraint) both.push(constraint);
    }
  }
  return unite(expansion, both);
}

/** Removes duplicates. A definition used in several branches would otherwise multiply the alternatives. */
function unite(
  { constraintKey }: CacheKeys,
  constraints: readonly TypeConstraint[],
): readonly TypeConstraint[] {
  return [
    ...new Map(constraints.map((constraint) => [constraintKey(constraint), constraint])).values(),
  ];
}

const constant = (value: unknown): TypeConstraint => ({
  type: 'const',
  value,
  implicit: false,
  exclusions: [],
});

function list(schema: Record<string, unknown>, keyword: string, path: string): unknown[] {
  const value = schema[keyword];
  if (!Array.isArray(value) || value.length === 0) {
    throw new UnsupportedSchema(path, keyword, 'must be a list that is not empty');
  }
  return value;
}

/** Allows each branch only where no other branch matches. */
function exclusive(
  branches: readonly (readonly TypeConstraint[])[],
  path: string,
): TypeConstraint[] {
  return branches.flatMap((branch, index) => {
    const others = branches.filter((_, other) => other !== index).flat();
    const exclusion: Exclusion = { constraints: others, path };
    return branch.map((constraint) => ({
      ...constraint,
      exclusions: [...constraint.exclusions, exclusion],
    }));
  });
}
