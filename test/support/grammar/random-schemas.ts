// Random schemas from what the grammar compiler claims to support.

import fc, { type Arbitrary } from 'fast-check';

type Schema = Record<string, unknown> | boolean;

const names = ['a', 'b', 'ab', 'kind', 'c"d', 'é', 'x y', '', 'n\n'];
const patterns = [
  '^[a-z]{2,5}$',
  'abc',
  '^a|b$',
  '(^x|y)z(?:1|2$)',
  '^(?:\\d{3}-)?\\d{4}$',
  '^[^"]*$',
  '[\\s\\S]{2}',
  '^\\w+\\s\\w+$',
  '^(a|ab)(c|bcd)*$',
  '.+?x{2,}',
  '^[\\u{1F600}-\\u{1F64F}é-ü\\\\\\]]+$',
  '^(?=.*\\d)(?!.*(?:00|a$))[a-z0-9]{2,6}$',
  '^(?<year>\\d{4})/[^\\d\\W]\\D$',
  '',
];

const string = fc
  .record(
    {
      minLength: fc.nat(4),
      maxLength: fc.integer({ min: 3, max: 12 }),
      pattern: fc.constantFrom(...patterns),
    },
    { requiredKeys: [] },
  )
  .map((keywords) => ({ type: 'string', ...keywords }));

const format = fc
  .constantFrom('date', 'time', 'date-time', 'uuid', 'email', 'ipv4', 'ipv6', 'hostname', 'uri')
  .map((name) => ({ type: 'string', format: name }));

const number = fc
  .tuple(fc.constantFrom('integer', 'number'), fc.integer({ min: -150, max: 150 }), fc.nat(250))
  .chain(([type, low, size]) =>
    fc.constantFrom<Schema>(
      { type },
      { type, minimum: low },
      { type, maximum: low },
      { type, minimum: low, maximum: low + size },
      { type, exclusiveMinimum: low / 4, exclusiveMaximum: (low + size) / 4 + 1 },
      { type, multipleOf: 1, minimum: low },
    ),
  );

const json = fc.jsonValue({ maxDepth: 2, stringUnit: 'grapheme' }).map(withoutInheritedNames);

/** Ajv reads `toString` and the like from the prototype when they are absent. */
function withoutInheritedNames(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value), (name, member) => (name in {} ? undefined : member));
}

const values = fc.oneof(
  fc
    .uniqueArray(json, { minLength: 1, maxLength: 4, selector: (value) => JSON.stringify(value) })
    .map((list) => ({ enum: list })),
  json.map((value) => ({ const: value })),
  fc
    .uniqueArray(fc.string({ unit: 'binary-ascii', maxLength: 3 }), { minLength: 9, maxLength: 20 })
    .map((list) => ({ enum: list })),
  fc.constant({ type: 'string', enum: ['red', 'green', 'a"b\\c', '\u2028', 'ü😀'] }),
);

const simple: Arbitrary<Schema> = fc.oneof(
  string,
  format,
  number,
  values,
  fc.constantFrom<Schema>({ type: 'boolean' }, { type: 'null' }, { type: ['string', 'null'] }),
  fc.constantFrom<Schema>(
    true,
    {},
    { type: 'object' },
    { type: 'array' },
    { $ref: '#/$defs/tree' },
  ),
);

function objects(member: Arbitrary<Schema>): Arbitrary<Record<string, unknown>> {
  return fc.record(
    {
      type: fc.constant('object'),
      properties: fc.dictionary(fc.constantFrom(...names), member, { maxKeys: 4 }),
      required: fc.uniqueArray(fc.constantFrom(...names), { maxLength: 3 }),
      additionalProperties: fc.oneof(fc.boolean(), member),
      minProperties: fc.nat(1),
      maxProperties: fc.integer({ min: 3, max: 6 }),
    },
    { requiredKeys: ['type', 'properties'] },
  );
}

function arrays(member: Arbitrary<Schema>): Arbitrary<Schema> {
  return fc
    .record(
      {
        items: member,
        prefixItems: fc.array(member, { minLength: 1, maxLength: 3 }),
        minItems: fc.nat(3),
        maxItems: fc.integer({ min: 2, max: 6 }),
      },
      { requiredKeys: [] },
    )
    .map((keywords) => ({ type: 'array', ...keywords }));
}

function unions(member: Arbitrary<Schema>): Arbitrary<Schema> {
  const branch = (kind: string) =>
    objects(member).map((schema) => ({
      ...schema,
      properties: { ...(schema.properties as object), kind: { const: kind } },
      required: ['kind'],
      minProperties: 0,
      maxProperties: 9,
    }));
  return fc.oneof(
    fc.array(member, { minLength: 1, maxLength: 3 }).map((anyOf) => ({ anyOf })),
    fc.tuple(branch('cat'), branch('dog')).map((oneOf) => ({ oneOf })),
    fc.constantFrom<Schema>(
      { oneOf: [{ type: 'string' }, { type: 'integer', minimum: 3 }, { type: 'null' }] },
      {
        type: 'object',
        properties: { a: { type: 'string' }, b: { type: 'string' }, c: {} },
        oneOf: [{ required: ['a'] }, { required: ['b'] }],
      },
      {
        oneOf: [
          { type: 'number', maximum: 2 },
          { type: 'number', exclusiveMinimum: 2 },
        ],
      },
      {
        oneOf: [
          { type: 'string', pattern: '^a' },
          { type: 'string', pattern: '^b' },
        ],
      },
    ),
    member.map((schema) => ({ oneOf: [schema, { type: 'null' }] })),
  );
}

function joined(member: Arbitrary<Schema>): Arbitrary<Schema> {
  return fc.oneof(
    fc.tuple(objects(member), objects(member)).map((allOf) => ({ allOf })),
    fc.tuple(objects(member), objects(member)).map(([own, other]) => ({ ...own, allOf: [other] })),
    fc.tuple(member, member).map((allOf) => ({ allOf })),
    fc.tuple(string, string).map((allOf) => ({ allOf })),
    fc.constant({ allOf: [{ $ref: '#/$defs/tree' }, { required: ['right'] }] }),
  );
}

const { schema } = fc.letrec<{ schema: Schema }>((tie) => {
  const member = tie('schema');
  return {
    schema: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      simple,
      objects(member),
      arrays(member),
      unions(member),
      joined(member),
    ),
  };
});

const tree = {
  type: 'object',
  properties: {
    left: { $ref: '#/$defs/tree' },
    right: { anyOf: [{ $ref: '#/$defs/tree' }, { type: 'null' }] },
    value: { type: 'integer' },
  },
  required: ['value'],
  additionalProperties: false,
};

export const schemas: Arbitrary<Record<string, unknown>> = schema.map((own) => ({
  ...(typeof own === 'boolean' ? {} : own),
  $defs: { tree },
}));
