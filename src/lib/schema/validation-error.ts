// Turns a validator's raw errors into one violation, which each API puts into its own words.

/** The part of Ajv's error object that is used here. */
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
  | 'letter_case'
  | 'format'
  | 'other';

export interface Violation {
  kind: ViolationKind;
  /** Path segments of the invalid member; empty if the body itself is invalid. */
  path: (string | number)[];
  /** The bound, the allowed values, the expected types, the pattern or the name, by `kind`. */
  expected: string[];
  /** True if the bound itself is refused too. */
  exclusive: boolean;
  /** True if the member must be a whole number. */
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
  letterCase: 'letter_case',
  pattern: 'format',
  format: 'format',
};

/**
 * Picks the most useful error, which is the deepest one: in a union, the branch that matched furthest is most
 * likely the intended one. Type errors at the same path are joined into "a string or an array".
 */
export function toViolation(errors: readonly RawViolation[]): Violation {
  const useful = errors.filter(
    (error) => !['anyOf', 'oneOf', 'allOf', 'if'].includes(error.keyword) && !isNullBranch(error),
  );
  const candidates = useful.length > 0 ? useful : errors;
  const deepest = candidates.reduce((best, error) => (rank(error) > rank(best) ? error : best));
  const kind = kinds[deepest.keyword] ?? 'other';
  const path = segments(deepest.instancePath);
  if (kind === 'missing') path.push(String(deepest.params.missingProperty));
  if (kind === 'unknown_member') path.push(String(deepest.params.additionalProperty));
  if (kind === 'letter_case') path.push(...(deepest.params.given as string[]));
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

/** Formats a path as API errors do: `messages[2].content`. */
export function toPathText(path: readonly (string | number)[]): string {
  return path.reduce<string>(
    (text, part) =>
      typeof part === 'number' ? `${text}[${part}]` : text ? `${text}.${part}` : part,
    '',
  );
}

/** Returns undefined if the path does not exist. */
export const valueAt = (value: unknown, path: readonly (string | number)[]): unknown =>
  path.reduce<unknown>((node, part) => (node as Record<string, unknown> | null)?.[part], value);

function isNullBranch(error: RawViolation): boolean {
  return error.keyword === 'type' && error.params.type === 'null';
}

/**
 * Deeper errors rank higher. At the same depth, a bound says more than a type. A list that is too
 * long comes first: in a union, the branches that don't mean such a list complain about its
 * members.
 */
function rank({ instancePath, keyword }: RawViolation): number {
  if (keyword === 'maxItems') return Infinity;
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
    case 'letterCase':
      return [String(params.known)];
    default:
      return params.limit === undefined ? [] : [String(params.limit)];
  }
}
