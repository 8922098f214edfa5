// From a schema to its constraints. Every keyword is looked at here; one that isn't known is refused by name,
// because ignoring it would let an answer through that the client's own validator rejects.

import { createPatterns } from '#inference/engines/local/grammar/regex/pattern.ts';
import type { Spend } from '#inference/engines/local/grammar/work-budget.ts';
import { type CacheKeys, createCacheKeys } from './cache-keys.ts';
import type { SchemaDocument } from './document.ts';
import { readKeywords } from './keywords.ts';
import {
  type Conjunction,
  type Exclusion,
  intersectConstraints,
  type TypeConstraint,
  unconstrained,
} from './type-constraints.ts';
import { join, UnsupportedSchema } from './unsupported-schema.ts';
import { matches } from './value-matching.ts';

const maxPairs = 100_000;
const maxConstraints = 2000;

/** Schemas within schemas about one value; a chain of references could be as long as the document. */
const maxNesting = 250;

export interface SchemaExpander extends CacheKeys {
  /** The alternatives that satisfy all of these schemas; none when nothing can. */
  expand(conjunction: Conjunction): readonly TypeConstraint[];
}

export function createSchemaExpander(document: SchemaDocument, spend: Spend): SchemaExpander {
  const known = new Map<object, readonly TypeConstraint[]>();
  const expanded = new Map<string, readonly TypeConstraint[]>();
  const open = new Set<object>();
  const patterns = createPatterns(spend);
  const { conjunctionKey, constraintKey } = createCacheKeys();

  // SchemaDocument that are used in several branches would otherwise multiply the alternatives.
  const unite = (constraints: readonly TypeConstraint[]): readonly TypeConstraint[] => [
    ...new Map(constraints.map((constraint) => [constraintKey(constraint), constraint])).values(),
  ];

  const expand = (conjunction: Conjunction) => {
    const key = conjunctionKey(conjunction);
    const constraints =
      expanded.get(key) ??
      conjunction.reduce<readonly TypeConstraint[]>(
        (all, { schema, path }) => intersect(all, expandOne(schema, path), path, ''),
        Object.values(unconstrained),
      );
    expanded.set(key, constraints);
    return constraints;
  };

  const expandOne = (schema: unknown, path: string): readonly TypeConstraint[] => {
    if (schema === true) return Object.values(unconstrained);
    if (schema === false) return [];
    if (typeof schema !== 'object' || schema === null || Array.isArray(schema)) {
      throw new UnsupportedSchema(path, '', 'is not a schema');
    }
    const before = known.get(schema);
    if (before) return before;
    if (open.size === maxNesting) {
      throw new UnsupportedSchema(path, '', 'is nested too deeply');
    }
    if (open.has(schema)) {
      throw new UnsupportedSchema(path, '$ref', 'refers to itself without end');
    }
    open.add(schema);
    const constraints = combine(schema as Record<string, unknown>, path);
    open.delete(schema);
    known.set(schema, constraints);
    return constraints;
  };

  const combine = (schema: Record<string, unknown>, path: string): readonly TypeConstraint[] => {
    let constraints: readonly TypeConstraint[] = readKeywords(schema, path, patterns);
    const narrow = (other: readonly TypeConstraint[], keyword: string) => {
      constraints = intersect(constraints, other, path, keyword);
    };
    if ('const' in schema) narrow([constant(schema.const)], 'const');
    if ('enum' in schema) narrow(list(schema, 'enum', path).map(constant), 'enum');
    if ('$ref' in schema) {
      const target = document.resolve(schema.$ref, path);
      narrow(expandOne(target.schema, target.path), '$ref');
    }
    const branches = (keyword: string) =>
      list(schema, keyword, path).map((branch, index) =>
        expandOne(branch, join(join(path, keyword), index)),
      );
    if ('allOf' in schema) for (const branch of branches('allOf')) narrow(branch, 'allOf');
    if ('anyOf' in schema) narrow(unite(branches('anyOf').flat()), 'anyOf');
    if ('oneOf' in schema) narrow(exclusive(branches('oneOf'), path), 'oneOf');
    if (constraints.length > maxConstraints) {
      throw new UnsupportedSchema(path, '', 'has too many alternatives');
    }
    return constraints;
  };

  const intersect = (
    a: readonly TypeConstraint[],
    b: readonly TypeConstraint[],
    path: string,
    keyword: string,
  ) => {
    if (a.length * b.length > maxPairs) {
      throw new UnsupportedSchema(path, keyword, 'has too many combinations');
    }
    const both: TypeConstraint[] = [];
    // The branches lead, so that alternatives come in the order in which the schema lists them.
    for (const other of b) {
      for (const one of a) {
        if (one.type === 'const' && !matches(one.value, other, { expand, spend })) continue;
        if (other.type === 'const' && !matches(other.value, one, { expand, spend })) continue;
        const constraint = intersectConstraints(one, other, spend);
        if (constraint) both.push(constraint);
      }
    }
    return unite(both);
  };

  return { expand, conjunctionKey, constraintKey };
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
    throw new UnsupportedSchema(path, keyword, 'must be a list with something in it');
  }
  return value;
}

/** Each branch may only be generated in a way that the others don't match. */
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
