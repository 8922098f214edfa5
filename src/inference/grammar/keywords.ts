// The keywords that speak about one type each: read, checked, and put into that type's shape.

import { intersectAutomata } from './automaton.ts';
import { findFormatPattern } from './formats.ts';
import { compilePattern } from './pattern.ts';
import { PatternError } from './regex.ts';
import { repetitionLimit, type Spend } from './rules.ts';
import {
  type ArrayShape,
  anyShapes,
  type NumberShape,
  type ObjectShape,
  type Shape,
  type StringShape,
} from './shapes.ts';
import { join, UnsupportedSchema } from './unsupported.ts';

type Schema = Readonly<Record<string, unknown>>;
type TypeName = keyof typeof anyShapes;

const annotations = new Set(
  '$schema $id $comment $defs definitions title description default examples deprecated readOnly writeOnly contentEncoding contentMediaType discriminator'.split(
    ' ',
  ),
);
const combinators = new Set(['type', 'enum', 'const', '$ref', 'allOf', 'anyOf', 'oneOf']);
const typeOf: ReadonlyMap<string, TypeName> = new Map([
  ['properties', 'object'],
  ['required', 'object'],
  ['additionalProperties', 'object'],
  ['minProperties', 'object'],
  ['maxProperties', 'object'],
  ['propertyNames', 'object'],
  ['items', 'array'],
  ['prefixItems', 'array'],
  ['minItems', 'array'],
  ['maxItems', 'array'],
  ['minLength', 'string'],
  ['maxLength', 'string'],
  ['pattern', 'string'],
  ['format', 'string'],
  ['minimum', 'number'],
  ['maximum', 'number'],
  ['exclusiveMinimum', 'number'],
  ['exclusiveMaximum', 'number'],
  ['multipleOf', 'number'],
]);

/** One shape for each type that `type` allows, with what the other keywords say about it. */
export function keywordShapes(schema: Schema, path: string, spend: Spend): Shape[] {
  const mentioned = new Set<TypeName>();
  for (const keyword of Object.keys(schema)) {
    if (keyword === 'propertyNames' && !isAnyName(schema[keyword])) {
      throw new UnsupportedSchema(path, keyword);
    }
    const numeric = keyword === 'format' && numberFormats.has(schema.format);
    const type = numeric ? 'number' : typeOf.get(keyword);
    if (type) mentioned.add(type);
    else if (keyword === '$id' && path !== '') throw new UnsupportedSchema(path, keyword);
    else if (!annotations.has(keyword) && !combinators.has(keyword) && !keyword.startsWith('x-')) {
      throw new UnsupportedSchema(path, keyword);
    }
  }
  const types = readTypes(schema, path);
  return Object.values(anyShapes).flatMap((any) => {
    const integerOnly = any.type === 'number' && !types?.has('number');
    if (types && !types.has(any.type) && !(integerOnly && types.has('integer'))) return [];
    const shape = constrain(any, schema, path, spend);
    const implicit = !types && mentioned.size > 0 && !mentioned.has(any.type as TypeName);
    return [{ ...shape, implicit, ...(types && integerOnly ? { integer: true } : {}) } as Shape];
  });
}

function readTypes(schema: Schema, path: string): Set<string> | undefined {
  if (schema.type === undefined) return undefined;
  const types = [schema.type].flat();
  for (const type of types) {
    if (typeof type !== 'string' || !(type === 'integer' || Object.hasOwn(anyShapes, type))) {
      throw new UnsupportedSchema(path, 'type', 'is not a JSON type');
    }
  }
  return new Set(types as string[]);
}

function constrain(shape: Shape, schema: Schema, path: string, spend: Spend): Shape {
  switch (shape.type) {
    case 'object':
      return constrainObject(shape, schema, path);
    case 'array':
      return constrainArray(shape, schema, path);
    case 'string':
      return constrainString(shape, schema, path, spend);
    case 'number':
      return constrainNumber(shape, schema, path);
    default:
      return shape;
  }
}

function constrainObject(shape: ObjectShape, schema: Schema, path: string): ObjectShape {
  const { properties, required = [], additionalProperties: additional } = schema;
  if (properties !== undefined && !isRecord(properties)) {
    throw new UnsupportedSchema(path, 'properties', 'must be an object');
  }
  if (!Array.isArray(required) || !required.every((name) => typeof name === 'string')) {
    throw new UnsupportedSchema(path, 'required', 'must be a list of names');
  }
  const location = join(path, 'properties');
  return {
    ...shape,
    properties: new Map(
      Object.entries(properties ?? {}).map(([name, member]) => [
        name,
        [{ schema: member, path: join(location, name) }],
      ]),
    ),
    required: [...new Set<string>(required)],
    additional:
      additional === undefined
        ? properties === undefined
          ? 'free'
          : 'unsaid'
        : additional === false
          ? 'none'
          : additional === true
            ? []
            : [{ schema: additional, path: join(path, 'additionalProperties') }],
    min: readCount(schema, 'minProperties', path) ?? 0,
    max: readCount(schema, 'maxProperties', path) ?? Infinity,
  };
}

function constrainArray(shape: ArrayShape, schema: Schema, path: string): ArrayShape {
  const { items, prefixItems = [] } = schema;
  if (!Array.isArray(prefixItems)) {
    throw new UnsupportedSchema(path, 'prefixItems', 'must be a list of schemas');
  }
  if (Array.isArray(items)) {
    throw new UnsupportedSchema(path, 'items', 'must be one schema (use prefixItems for a list)');
  }
  const location = join(path, 'prefixItems');
  return {
    ...shape,
    prefix: prefixItems.map((item, index) => [{ schema: item, path: join(location, index) }]),
    items:
      items === undefined || items === true ? [] : [{ schema: items, path: join(path, 'items') }],
    min: readCount(schema, 'minItems', path) ?? 0,
    max: readCount(schema, 'maxItems', path) ?? Infinity,
  };
}

function constrainString(
  shape: StringShape,
  schema: Schema,
  path: string,
  spend: Spend,
): StringShape {
  const pattern = 'pattern' in schema ? compile(schema.pattern, 'pattern', path, spend) : null;
  const format =
    'format' in schema && !numberFormats.has(schema.format)
      ? compileFormat(schema.format, path, spend)
      : null;
  return {
    ...shape,
    min: readCount(schema, 'minLength', path) ?? 0,
    max: readCount(schema, 'maxLength', path) ?? Infinity,
    automaton: pattern && format ? intersectAutomata(pattern, format, spend) : (pattern ?? format),
  };
}

/** OpenAPI's; they say nothing about strings. */
const numberFormats: ReadonlyMap<unknown, { min: number; max: number }> = new Map([
  ['int32', { min: -(2 ** 31), max: 2 ** 31 - 1 }],
  ['int64', { min: -Infinity, max: Infinity }],
  ['float', { min: -Infinity, max: Infinity }],
  ['double', { min: -Infinity, max: Infinity }],
]);

function compileFormat(format: unknown, path: string, spend: Spend) {
  const pattern = typeof format === 'string' ? findFormatPattern(format) : undefined;
  if (pattern === undefined) throw new UnsupportedSchema(path, 'format', 'is not a known format');
  return compile(pattern, 'format', path, spend);
}

function compile(pattern: unknown, keyword: string, path: string, spend: Spend) {
  if (typeof pattern !== 'string') throw new UnsupportedSchema(path, keyword, 'must be a string');
  try {
    return compilePattern(pattern, spend);
  } catch (error) {
    if (error instanceof PatternError) throw new UnsupportedSchema(path, keyword, error.message);
    throw error;
  }
}

function constrainNumber(shape: NumberShape, schema: Schema, path: string): NumberShape {
  const bound = (keyword: string) => {
    const value = schema[keyword];
    if (value === undefined || typeof value === 'number') return value;
    throw new UnsupportedSchema(path, keyword, 'must be a number');
  };
  const multiple = bound('multipleOf');
  if (multiple !== undefined && multiple !== 1) {
    throw new UnsupportedSchema(path, 'multipleOf', 'is only supported as 1');
  }
  const width = numberFormats.get(schema.format) ?? { min: -Infinity, max: Infinity };
  const min = Math.max(
    width.min,
    bound('minimum') ?? -Infinity,
    bound('exclusiveMinimum') ?? -Infinity,
  );
  const max = Math.min(
    width.max,
    bound('maximum') ?? Infinity,
    bound('exclusiveMaximum') ?? Infinity,
  );
  return {
    ...shape,
    min,
    max,
    integer: multiple === 1,
    aboveMin: min === schema.exclusiveMinimum,
    belowMax: max === schema.exclusiveMaximum,
  };
}

/** Names are strings anyway; generators of schemas like to say so. */
function isAnyName(names: unknown): boolean {
  if (names === true) return true;
  return isRecord(names) && Object.entries(names).every((entry) => String(entry) === 'type,string');
}

function readCount(schema: Schema, keyword: string, path: string): number | undefined {
  const value = schema[keyword];
  if (value === undefined) return undefined;
  if (typeof value !== 'number' || !Number.isInteger(value) || value < 0) {
    throw new UnsupportedSchema(path, keyword, 'must be a whole number');
  }
  if (keyword.startsWith('min') && value > repetitionLimit) {
    throw new UnsupportedSchema(path, keyword, 'is too large');
  }
  return value;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
