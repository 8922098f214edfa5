// JSON Schema helpers shared by every API: optional-and-nullable members, and turning a validator's raw
// errors into one violation that an API can put into its own words.

import type { Static, TSchema } from 'typebox';
import { Type } from './schema-builder.ts';

/** A member that may be absent or null; both mean "not given". */
export const Maybe = <S extends TSchema>(schema: S) =>
  Type.Optional(Type.Union([schema, Type.Null()]));

/** A closed set of strings, as a plain JSON Schema `enum`. */
export const OneOf = <const Values extends readonly string[]>(values: Values) =>
  Type.Unsafe<Values[number]>({ type: 'string', enum: [...values] });

export type { Static };

/** The part of Ajv's error object that we read. */
export interface RawViolation {
  instancePath: string;
  keyword: string;
  params: Record<string, unknown>;
  schemaPath?: string;
  parentSchema?: object;
}

export type ViolationKind =
  | 'missing'
  | 'type'
  | 'too_small'
  | 'too_large'
  | 'too_short'
  | 'too_long'
  | 'too_few'
  | 'too_many'
  | 'not_allowed'
  | 'unknown_member'
  | 'format'
  | 'other';

export interface Violation {
  kind: ViolationKind;
  /** Where, as path segments; empty when the body itself is at fault. */
  path: (string | number)[];
  /** The bound, the allowed values, the expected types or the pattern; what `kind` needs to be explained. */
  expected: string[];
  /** The bound itself is refused too. */
  exclusive: boolean;
  /** The member takes whole numbers only. */
  isInteger: boolean;
}

const kinds: Record<string, ViolationKind> = {
  required: 'missing',
  type: 'type',
  minimum: 'too_small',
  exclusiveMinimum: 'too_small',
  maximum: 'too_large',
  exclusiveMaximum: 'too_large',
  minLength: 'too_short',
  maxLength: 'too_long',
  minItems: 'too_few',
  minProperties: 'too_few',
  maxItems: 'too_many',
  maxProperties: 'too_many',
  enum: 'not_allowed',
  const: 'not_allowed',
  additionalProperties: 'unknown_member',
  pattern: 'format',
  format: 'format',
};

/**
 * Picks the most telling error: the deepest one, because in a union the branch that got furthest is the
 * one that was meant; type errors at the same place are joined into "a string or an array".
 */
export function toViolation(errors: readonly RawViolation[]): Violation {
  const telling = errors.filter(
    (error) => !['anyOf', 'oneOf', 'allOf', 'if'].includes(error.keyword) && !isNullBranch(error),
  );
  const candidates = telling.length > 0 ? telling : errors;
  const deepest = candidates.reduce((best, error) => (rank(error) > rank(best) ? error : best));
  const kind = kinds[deepest.keyword] ?? 'other';
  const path = segments(deepest.instancePath);
  if (kind === 'missing') path.push(String(deepest.params.missingProperty));
  if (kind === 'unknown_member') path.push(String(deepest.params.additionalProperty));
  const sameKind = candidates.filter(
    (error) => error.keyword === deepest.keyword && error.instancePath === deepest.instancePath,
  );
  const { type } = (deepest.parentSchema ?? {}) as { type?: unknown };
  return {
    kind,
    path,
    expected: [...new Set(sameKind.flatMap(expectation))],
    exclusive: deepest.keyword.startsWith('exclusive'),
    isInteger: type === 'integer',
  };
}

/** `messages[2].content`, the form API errors use. */
export function toPathText(path: readonly (string | number)[]): string {
  return path.reduce<string>(
    (text, part) =>
      typeof part === 'number' ? `${text}[${part}]` : text ? `${text}.${part}` : part,
    '',
  );
}

/** Undefined where the path leads nowhere. */
export const valueAt = (value: unknown, path: readonly (string | number)[]): unknown =>
  path.reduce<unknown>((node, part) => (node as Record<string, unknown> | null)?.[part], value);

function isNullBranch(error: RawViolation): boolean {
  return error.keyword === 'type' && error.params.type === 'null';
}

/** Deeper beats shallower; at one depth, a bound says more than a type that was never meant. */
function rank({ instancePath, keyword }: RawViolation): number {
  const depth = instancePath.split('/').length + (keyword === 'required' ? 1 : 0);
  return depth * 2 + (keyword === 'type' ? 0 : 1);
}

function segments(pointer: string): (string | number)[] {
  return pointer
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
    .map((part) => (/^\d{1,9}$/.test(part) ? Number(part) : part));
}

function expectation({ keyword, params }: RawViolation): string[] {
  switch (keyword) {
    case 'type':
      return [params.type].flat().map(String);
    case 'enum':
      return (params.allowedValues as unknown[]).map(String);
    case 'const':
      return [String(params.allowedValue)];
    case 'pattern':
      return [String(params.pattern)];
    case 'format':
      return [String(params.format)];
    default:
      return params.limit === undefined ? [] : [String(params.limit)];
  }
}
