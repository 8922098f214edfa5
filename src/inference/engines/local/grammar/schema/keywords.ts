// Reads and checks the keywords that apply to one type each, and adds them to that type's constraint.

import type { Patterns } from '#inference/engines/local/grammar/regex/pattern.ts';
import { PatternError } from '#inference/engines/local/grammar/regex/regex.ts';
import { maxMagnitude } from '#inference/engines/local/grammar/rules/numbers.ts';
import { maxRepetitions } from '#inference/engines/local/grammar/rules/rule-builder.ts';
import { isMembers } from './document.ts';
import { findFormatPattern, findFormatRange } from './formats.ts';
import {
  type ArrayConstraint,
  type NumberConstraint,
  type ObjectConstraint,
  type StringConstraint,
  type TypeConstraint,
  unconstrained,
} from './type-constraints.ts';
import { join, UnsupportedSchema } from './unsupported-schema.ts';

type Schema = Readonly<Record<string, unknown>>;
type TypeName = keyof typeof unconstrained;

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

/** One constraint for each type that `type` allows, narrowed by the other keywords. */
export function readKeywords(schema: Schema, path: string, patterns: Patterns): TypeConstraint[] {
  const mentioned = new Set<TypeName>();
  for (const keyword of Object.keys(schema)) {
    if (keyword === 'propertyNames' && !isAnyName(schema[keyword])) {
      throw new UnsupportedSchema(path, keyword);
    }
    const numeric = keyword === 'format' && isNumberFormat(schema.format, path);
    const type = numeric ? 'number' : typeOf.get(keyword);
    if (type) mentioned.add(type);
    else if (keyword === '$id' && path !== '') throw new UnsupportedSchema(path, keyword);
    else if (!annotations.has(keyword) && !combinators.has(keyword) && !keyword.startsWith('x-')) {
      throw new UnsupportedSchema(path, keyword);
    }
  }
  const types = readTypes(schema, path);
  return Object.values(unconstrained).flatMap((any) => {
    const integerOnly = any.type === 'number' && !types?.has('number');
    if (types && !types.has(any.type) && !(integerOnly && types.has('integer'))) return [];
    const constraint = constrain(any, schema, path, patterns);
    const implicit = !types && mentioned.size > 0 && !mentioned.has(any.type as TypeName);
    return [
      {
        ...constraint,
        implicit,
        ...(types && integerOnly ? { integer: true } : {}),
      } as TypeConstraint,
    ];
  });
}

function readTypes(schema: Schema, path: string): Set<string> | undefined {
  if (schema.type === undefined) return undefined;
  const types = [schema.type].flat();
  for (const type of types) {
    if (typeof type !== 'string' || !(type === 'integer' || Object.hasOwn(unconstrained, type))) {
      throw new UnsupportedSchema(path, 'type', 'is not a JSON type');
    }
  }
  return new Set(types as string[]);
}

function constrain(
  constraint: TypeConstraint,
  schema: Schema,
  path: string,
  patterns: Patterns,
): TypeConstraint {
  switch (constraint.type) {
    case 'object':
      return constrainObject(constraint, schema, path);
    case 'array':
      return constrainArray(constraint, schema, path);
    case 'string':
      return constrainString(constraint, schema, path, patterns);
    case 'number':
      return constrainNumber(constraint, schema, path);
    default:
      return constraint;
  }
}

function constrainObject(
  constraint: ObjectConstraint,
  schema: Schema,
  path: string,
): ObjectConstraint {
  const { properties, required = [] } = schema;
  if (properties !== undefined && !isMembers(properties)) {
    throw new UnsupportedSchema(path, 'properties', 'must be an object');
  }
  if (!Array.isArray(required) || !required.every((name) => typeof name === 'string')) {
    throw new UnsupportedSchema(path, 'required', 'must be a list of names');
  }
  const location = join(path, 'properties');
  return {
    ...constraint,
    properties: new Map(
      Object.entries(properties ?? {}).map(([name, member]) => [
        name,
        [{ schema: member, path: join(location, name) }],
      ]),
    ),
    required: [...new Set<string>(required)],
    additional: readAdditional(schema, path),
    min: readCount(schema, 'minProperties', path) ?? 0,
    max: readCount(schema, 'maxProperties', path) ?? Infinity,
  };
}

function readAdditional(schema: Schema, path: string): ObjectConstraint['additional'] {
  const { properties, additionalProperties: additional } = schema;
  if (additional === undefined) return properties === undefined ? 'free' : 'unsaid';
  if (additional === false) return 'none';
  return additional === true
    ? []
    : [{ schema: additional, path: join(path, 'additionalProperties') }];
}

function constrainArray(
  constraint: ArrayConstraint,
  schema: Schema,
  path: string,
): ArrayConstraint {
  const { items, prefixItems = [] } = schema;
  if (!Array.isArray(prefixItems)) {
    throw new UnsupportedSchema(path, 'prefixItems', 'must be a list of schemas');
  }
  if (Array.isArray(items)) {
    throw new UnsupportedSchema(path, 'items', 'must be one schema (use prefixItems for a list)');
  }
  const location = join(path, 'prefixItems');
  return {
    ...constraint,
    prefix: prefixItems.map((item, index) => [{ schema: item, path: join(location, index) }]),
    items:
      items === undefined || items === true ? [] : [{ schema: items, path: join(path, 'items') }],
    min: readCount(schema, 'minItems', path) ?? 0,
    max: readCount(schema, 'maxItems', path) ?? Infinity,
  };
}

function constrainString(
  constraint: StringConstraint,
  schema: Schema,
  path: string,
  patterns: Patterns,
): StringConstraint {
  const pattern = 'pattern' in schema ? compile(schema.pattern, 'pattern', path, patterns) : null;
  const formatPattern = findFormatPattern(schema.format);
  const format = formatPattern ? compile(formatPattern, 'format', path, patterns) : null;
  return {
    ...constraint,
    min: readCount(schema, 'minLength', path) ?? 0,
    max: readCount(schema, 'maxLength', path) ?? Infinity,
    automaton: pattern && format ? patterns.both(pattern, format) : (pattern ?? format),
  };
}

function compile(pattern: unknown, keyword: string, path: string, patterns: Patterns) {
  if (typeof pattern !== 'string') throw new UnsupportedSchema(path, keyword, 'must be a string');
  try {
    return patterns.compile(pattern);
  } catch (error) {
    if (error instanceof PatternError) throw new UnsupportedSchema(path, keyword, error.message);
    throw error;
  }
}

function constrainNumber(
  constraint: NumberConstraint,
  schema: Schema,
  path: string,
): NumberConstraint {
  const bound = (keyword: string) => {
    const value = schema[keyword];
    if (value === undefined) return undefined;
    if (typeof value !== 'number') throw new UnsupportedSchema(path, keyword, 'must be a number');
    const far = /min/i.test(keyword) ? value : -value;
    if (far > maxMagnitude) throw new UnsupportedSchema(path, keyword, 'is too far from zero');
    return value;
  };
  const multiple = bound('multipleOf');
  if (multiple !== undefined && multiple !== 1) {
    throw new UnsupportedSchema(path, 'multipleOf', 'is only supported as 1');
  }
  const width = findFormatRange(schema.format) ?? { min: -Infinity, max: Infinity };
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
    ...constraint,
    min,
    max,
    integer: multiple === 1,
    aboveMin: min === schema.exclusiveMinimum,
    belowMax: max === schema.exclusiveMaximum,
  };
}

/** True for a format of numbers, false for one of strings. Throws for any other, whatever the type. */
function isNumberFormat(format: unknown, path: string): boolean {
  if (findFormatRange(format)) return true;
  if (findFormatPattern(format)) return false;
  throw new UnsupportedSchema(path, 'format', 'is not a known format');
}

/** True if `propertyNames` only says that names are strings, as some schema generators write. */
function isAnyName(names: unknown): boolean {
  if (names === true) return true;
  return (
    isMembers(names) && Object.entries(names).every((entry) => String(entry) === 'type,string')
  );
}

function readCount(schema: Schema, keyword: string, path: string): number | undefined {
  const value = schema[keyword];
  if (value === undefined) return undefined;
  if (typeof value !== 'number' || !Number.isInteger(value) || value < 0) {
    throw new UnsupportedSchema(path, keyword, 'must be a whole number');
  }
  if (keyword.startsWith('min') && value > maxRepetitions) {
    throw new UnsupportedSchema(path, keyword, 'is too large');
  }
  return value;
}
