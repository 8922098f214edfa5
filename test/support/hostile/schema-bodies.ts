// Bodies generated from a schema: they have its members, mostly with values that it allows, so that they get past it and
// reach what it can't express.

import fc from 'fast-check';

interface Schema {
  type?: string | string[];
  const?: unknown;
  enum?: unknown[];
  anyOf?: Schema[];
  properties?: Record<string, Schema>;
  required?: string[];
  additionalProperties?: Schema | boolean;
  items?: Schema;
  minItems?: number;
  pattern?: string;
  minLength?: number;
  maxLength?: number;
  minimum?: number;
  exclusiveMinimum?: number;
  maximum?: number;
}

/** Words that mean something somewhere, and texts that are easily mistaken for something else. */
const words = [
  ...['mill', 'user', 'assistant', 'tool', 'text', 'function', 'input', 'json_schema', 'auto'],
  ...['', ' ', '\u0000', '\ud800', '<think>', 'data:image/png;base64,AAAA', 'http://127.0.0.1/'],
  ...[
    '24h',
    '/v1/chat/completions',
    'call_1',
    'resp_00000000000000000000000000000000',
    '__proto__',
    '[[[',
    '(a+)+$',
    '{}',
    'é',
  ],
];

/** Beyond these, values are the simplest ones. */
const maxDepth = 6;

export function toBody(schema: unknown, depth = 0): fc.Arbitrary<unknown> {
  const { const: only, enum: values, anyOf, type, ...rest } = schema as Schema;
  if (only !== undefined) return fc.constant(only);
  if (values !== undefined) return fc.constantFrom(...values);
  if (anyOf !== undefined) return fc.oneof(...anyOf.map((one) => toBody(one, depth)));
  if (Array.isArray(type)) {
    return fc.oneof(...type.map((one) => toBody({ ...rest, type: one }, depth)));
  }
  switch (type) {
    case 'object':
      return toObject(rest, depth);
    case 'array': {
      const { items = {}, minItems = 0 } = rest;
      const maxLength = depth > maxDepth ? minItems : Math.max(minItems, 3);
      return fc.array(toBody(items, depth + 1), { minLength: minItems, maxLength });
    }
    case 'string':
      return toText(rest);
    case 'integer':
    case 'number':
      return toNumber(rest, type === 'integer');
    case 'boolean':
      return fc.boolean();
    case 'null':
      return fc.constant(null);
    default:
      return fc.oneof(fc.constantFrom(...words), fc.jsonValue({ maxDepth: 2 }));
  }
}

/** Most members are left out: each one may be refused together with others. */
const optional = (value: fc.Arbitrary<unknown>) =>
  fc.oneof({ weight: 6, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary: value });

const withoutAbsent = (members: Record<string, unknown>) =>
  Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined));

function toObject(schema: Schema, depth: number): fc.Arbitrary<unknown> {
  const { properties = {}, required = [], additionalProperties } = schema;
  const isDeep = depth > maxDepth;
  const members = Object.entries(properties)
    .filter(([name]) => !isDeep || required.includes(name))
    .map(([name, member]) => {
      const value = toBody(member, depth + 1);
      return [name, required.includes(name) ? value : optional(value)] as const;
    });
  const known = fc.record(Object.fromEntries(members)).map(withoutAbsent);
  if (typeof additionalProperties !== 'object' || isDeep) return known;
  const others = fc.dictionary(fc.constantFrom(...words), toBody(additionalProperties, depth + 1), {
    maxKeys: 2,
  });
  return fc.tuple(known, others).map(([own, more]) => ({ ...more, ...own }));
}

function toText({ pattern, minLength = 0, maxLength = Infinity }: Schema): fc.Arbitrary<string> {
  const allowed = words.filter(
    (word) =>
      word.length >= minLength &&
      word.length <= maxLength &&
      (pattern === undefined || new RegExp(pattern, 'u').test(word)),
  );
  const some = allowed.length === 0 ? words : allowed;
  return fc.oneof(
    { weight: 8, arbitrary: fc.constantFrom(...some) },
    { weight: 1, arbitrary: fc.constantFrom(...words) },
  );
}

function toNumber(schema: Schema, isInteger: boolean): fc.Arbitrary<number> {
  const { minimum, exclusiveMinimum, maximum } = schema;
  const least = minimum ?? (exclusiveMinimum === undefined ? -2 : exclusiveMinimum + 1);
  const most = Math.max(least, Math.min(maximum ?? 1e9, least + 8));
  const extremes = [0, -1, 0.5, 1e300, -1e300, 2 ** 53, 5e-324, maximum ?? 1e18];
  return fc.oneof(
    {
      weight: 6,
      arbitrary: fc
        .integer({ min: Math.ceil(least), max: Math.max(Math.ceil(least), Math.floor(most)) })
        .map((value) => (isInteger ? value : value / 2)),
    },
    { weight: 1, arbitrary: fc.constantFrom(...extremes) },
  );
}

/** What may happen to the bytes of a body on their way. */
const spoilers: Record<string, (text: string, at: number) => Buffer> = {
  nothing: (text) => Buffer.from(text),
  'invalid UTF-8': (text, at) => {
    const bytes = Buffer.from(text);
    const place = at % (bytes.length + 1);
    return Buffer.concat([bytes.subarray(0, place), Buffer.of(0xc3, 0x28), bytes.subarray(place)]);
  },
  'cut off': (text, at) => Buffer.from(text).subarray(0, at % (text.length + 1)),
  'a deep value': (text) =>
    Buffer.from(text.replace(/:/, `:${'['.repeat(2_000)}${']'.repeat(2_000)},"x":`)),
  'a number beyond all': (text) => Buffer.from(text.replace(/:\s*-?\d[\d.eE+-]*/, ':1e999')),
  'a name twice': (text) => Buffer.from(text.replace(/\{/, '{"model":{},"model":"mill",')),
  'a null byte': (text, at) =>
    Buffer.from(`${text.slice(0, at % text.length)}\0${text.slice(at % text.length)}`),
};

export const spoiling = fc.oneof(
  { weight: 10, arbitrary: fc.constant('nothing') },
  { weight: 2, arbitrary: fc.constantFrom(...Object.keys(spoilers)) },
);

export const spoil = (body: unknown, how: string, at: number): Buffer =>
  spoilers[how]?.(JSON.stringify(body), at) ?? Buffer.alloc(0);
