// From a schema to its shapes. Every keyword is looked at here; one that isn't known is refused by name,
// because ignoring it would let an answer through that the client's own validator rejects.

import { createPatterns } from '#inference/engines/local/grammar/regex/pattern.ts';
import type { Definitions } from './document.ts';
import { createKeys, type Keys } from './cache-keys.ts';
import { keywordShapes } from './keywords.ts';
import { matches } from './value-matching.ts';
import type { Spend } from '#inference/engines/local/grammar/rules/rule-builder.ts';
import {
  anyShapes,
  type Conjunction,
  type Exclusion,
  intersectShapes,
  type Shape,
} from './type-constraints.ts';
import { join, UnsupportedSchema } from './unsupported-schema.ts';

const pairLimit = 100_000;
const shapeLimit = 2000;

/** Schemas within schemas about one value; a chain of references could be as long as the document. */
const nestingLimit = 250;

export interface Expander extends Keys {
  /** The alternatives that satisfy all of these schemas; none when nothing can. */
  expand(conjunction: Conjunction): readonly Shape[];
}

export function createExpander(definitions: Definitions, spend: Spend): Expander {
  const known = new Map<object, readonly Shape[]>();
  const expanded = new Map<string, readonly Shape[]>();
  const open = new Set<object>();
  const patterns = createPatterns(spend);
  const { keyOf, shapeKey } = createKeys();

  // Definitions that are used in several branches would otherwise multiply the alternatives.
  const unite = (shapes: readonly Shape[]): readonly Shape[] => [
    ...new Map(shapes.map((shape) => [shapeKey(shape), shape])).values(),
  ];

  const expand = (conjunction: Conjunction) => {
    const key = keyOf(conjunction);
    const shapes =
      expanded.get(key) ??
      conjunction.reduce<readonly Shape[]>(
        (all, { schema, path }) => intersect(all, expandOne(schema, path), path, ''),
        Object.values(anyShapes),
      );
    expanded.set(key, shapes);
    return shapes;
  };

  const expandOne = (schema: unknown, path: string): readonly Shape[] => {
    if (schema === true) return Object.values(anyShapes);
    if (schema === false) return [];
    if (typeof schema !== 'object' || schema === null || Array.isArray(schema)) {
      throw new UnsupportedSchema(path, '', 'is not a schema');
    }
    const before = known.get(schema);
    if (before) return before;
    if (open.size === nestingLimit) {
      throw new UnsupportedSchema(path, '', 'is nested too deeply');
    }
    if (open.has(schema)) {
      throw new UnsupportedSchema(path, '$ref', 'refers to itself without end');
    }
    open.add(schema);
    const shapes = combine(schema as Record<string, unknown>, path);
    open.delete(schema);
    known.set(schema, shapes);
    return shapes;
  };

  const combine = (schema: Record<string, unknown>, path: string): readonly Shape[] => {
    let shapes: readonly Shape[] = keywordShapes(schema, path, patterns);
    const narrow = (other: readonly Shape[], keyword: string) => {
      shapes = intersect(shapes, other, path, keyword);
    };
    if ('const' in schema) narrow([constant(schema.const)], 'const');
    if ('enum' in schema) narrow(list(schema, 'enum', path).map(constant), 'enum');
    if ('$ref' in schema) {
      const target = definitions.resolve(schema.$ref, path);
      narrow(expandOne(target.schema, target.path), '$ref');
    }
    const branches = (keyword: string) =>
      list(schema, keyword, path).map((branch, index) =>
        expandOne(branch, join(join(path, keyword), index)),
      );
    if ('allOf' in schema) for (const branch of branches('allOf')) narrow(branch, 'allOf');
    if ('anyOf' in schema) narrow(unite(branches('anyOf').flat()), 'anyOf');
    if ('oneOf' in schema) narrow(exclusive(branches('oneOf'), path), 'oneOf');
    if (shapes.length > shapeLimit) {
      throw new UnsupportedSchema(path, '', 'has too many alternatives');
    }
    return shapes;
  };

  const intersect = (a: readonly Shape[], b: readonly Shape[], path: string, keyword: string) => {
    if (a.length * b.length > pairLimit) {
      throw new UnsupportedSchema(path, keyword, 'has too many combinations');
    }
    const both: Shape[] = [];
    // The branches lead, so that alternatives come in the order in which the schema lists them.
    for (const other of b) {
      for (const one of a) {
        if (one.type === 'const' && !matches(one.value, other, { expand, spend })) continue;
        if (other.type === 'const' && !matches(other.value, one, { expand, spend })) continue;
        const shape = intersectShapes(one, other, spend);
        if (shape) both.push(shape);
      }
    }
    return unite(both);
  };

  return { expand, keyOf, shapeKey };
}

const constant = (value: unknown): Shape => ({
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
function exclusive(branches: readonly (readonly Shape[])[], path: string): Shape[] {
  return branches.flatMap((branch, index) => {
    const others = branches.filter((_, other) => other !== index).flat();
    const exclusion: Exclusion = { shapes: others, path };
    return branch.map((shape) => ({ ...shape, exclusions: [...shape.exclusions, exclusion] }));
  });
}
