// Schemas as clients send them, each with values that its grammar must be able to write and values that
// it must not. Used against our own reader and against llama.cpp.

export interface GrammarCase {
  readonly name: string;
  readonly schema: unknown;
  readonly accepts: readonly string[];
  readonly rejects: readonly string[];
}

export const grammarCases: readonly GrammarCase[] = [
  {
    name: 'required and optional members',
    schema: {
      type: 'object',
      properties: { a: { type: 'integer' }, b: { type: 'boolean' }, c: { type: 'null' } },
      required: ['b'],
      additionalProperties: false,
    },
    accepts: [
      '{"b": true}',
      '{"a":1,"b":false}',
      '{"a": 1, "b": true, "c": null}',
      '{"b":true,"c":null}',
    ],
    rejects: [
      '{}',
      '{"a": 1}',
      '{"b": true,}',
      '{"b": true} ',
      '{"b":  true}',
      '{"b": true, "d": 1}',
    ],
  },
  {
    name: 'additional members under other names',
    schema: {
      type: 'object',
      properties: { id: { type: 'integer' }, idle: { type: 'integer' } },
      additionalProperties: { type: 'string' },
    },
    accepts: [
      '{}',
      '{"id": 1, "x": "y"}',
      '{"i": "y"}',
      '{"ide": "y", "": "z"}',
      '{"id": 1, "idles": ""}',
    ],
    rejects: ['{"id": "x"}', '{"\\u0069d": "x"}', '{"x": "y", "id": 1}', '{"idle": ""}'],
  },
  {
    name: 'any string',
    schema: { type: 'string' },
    accepts: ['""', '"a b"', '"é😀\u2028"', '"\\n\\"\\\\\\/\\u00e9"', '"{\\"a\\": [1]}"'],
    rejects: ['"a', '"a\n"', '"\\x"', '"\\ud800"', 'a', '"a" '],
  },
  {
    name: 'string lengths in code points',
    schema: { type: 'string', minLength: 2, maxLength: 3 },
    accepts: ['"ab"', '"😀😀😀"', '"\\n\\u00e9"'],
    rejects: ['"a"', '"abcd"', '"\\n"'],
  },
  {
    name: 'an enum of all kinds of values',
    schema: { enum: ['a"b', 1.5, null, { x: [true] }, 'ü'] },
    accepts: ['"a\\"b"', '1.5', 'null', '{"x":[true]}', '"ü"'],
    rejects: ['"a"', '1', 'true'],
  },
  {
    name: 'a long enum',
    schema: {
      enum: [
        'a',
        'ab',
        'abc',
        'abd',
        'b',
        '',
        1,
        12,
        123,
        -1,
        '😀',
        '😁',
        '\ud83d',
        [1],
        [1, 2],
        null,
      ],
    },
    accepts: ['"a"', '"ab"', '"abd"', '""', '1', '12', '-1', '"😀"', '"😁"', '"\\ud83d"', '[1,2]'],
    rejects: ['"abe"', '"', '2', '"😂"', '[1', 'nul', '1234'],
  },
  {
    name: 'a choice told apart by a constant',
    schema: {
      oneOf: [
        {
          type: 'object',
          properties: { kind: { const: 'circle' }, r: { type: 'number' } },
          required: ['kind', 'r'],
        },
        {
          type: 'object',
          properties: { kind: { const: 'square' }, a: { type: 'number' } },
          required: ['kind', 'a'],
        },
      ],
    },
    accepts: ['{"kind": "circle", "r": 1.5}', '{"kind": "square", "a": -2e3}'],
    rejects: ['{"kind": "circle", "a": 1}', '{"kind": "circle"}'],
  },
  {
    name: 'merged objects',
    schema: {
      allOf: [
        { $ref: '#/$defs/named' },
        { type: 'object', properties: { age: { type: 'integer', minimum: 0 } }, required: ['age'] },
        { properties: { age: { maximum: 9 } } },
      ],
      $defs: {
        named: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] },
      },
    },
    accepts: ['{"name": "x", "age": 0}', '{"name": "", "age": 9}'],
    rejects: ['{"name": "x"}', '{"name": "x", "age": 10}', '{"age": 1}'],
  },
  {
    name: 'a recursive definition',
    schema: {
      $ref: '#/$defs/node',
      $defs: {
        node: {
          type: 'object',
          properties: {
            value: { type: 'integer' },
            next: { anyOf: [{ $ref: '#/$defs/node' }, { type: 'null' }] },
          },
          required: ['value', 'next'],
        },
      },
    },
    accepts: ['{"value": 1, "next": null}', '{"value": 1, "next": {"value": -2, "next": null}}'],
    rejects: ['{"value": 1}', '{"value": 1, "next": {}}'],
  },
  {
    name: 'lists with bounds and a head',
    schema: {
      type: 'array',
      prefixItems: [{ type: 'string' }],
      items: { type: 'integer' },
      minItems: 2,
      maxItems: 3,
    },
    accepts: ['["a", 1]', '["a",1,2]'],
    rejects: ['["a"]', '[]', '[1, 2]', '["a", 1, 2, 3]', '["a", "b"]'],
  },
  {
    name: 'integers within bounds',
    schema: { type: 'integer', minimum: -12, maximum: 130 },
    accepts: ['0', '-1', '-12', '9', '10', '99', '100', '129', '130'],
    rejects: ['-13', '131', '-0', '01', '1.0', '1e1', '200', '-20'],
  },
  {
    name: 'numbers within bounds',
    schema: { type: 'number', exclusiveMinimum: -1.5, maximum: 2.25 },
    accepts: ['0', '-1.4', '-1.49', '2', '2.25', '2.250', '1.999999', '0.5'],
    rejects: ['-1.5', '-1.50', '2.26', '3', '-2', '2.251'],
  },
  {
    name: 'a pattern with a length',
    schema: { type: 'string', pattern: '^[A-Z]{2,}-\\d+$', maxLength: 6 },
    accepts: ['"AB-1"', '"ABC-12"', '"AB-123"'],
    rejects: ['"A-1"', '"AB-"', '"ABCD-12"', '"AB-1x"'],
  },
  {
    name: 'a pattern found anywhere',
    schema: { type: 'string', pattern: 'cat' },
    accepts: ['"cat"', '"a cat!"', '"cacat\\n"', '"\\"cat\\""'],
    rejects: ['"ca"', '"c at"'],
  },
  {
    name: 'a pattern that looks ahead from its start',
    schema: { type: 'string', pattern: '^(?=.*\\d)(?!.*--)[a-z0-9-]{3,8}$' },
    accepts: ['"abc1"', '"1-2-3"', '"a-1"'],
    rejects: ['"abcd"', '"a--1"', '"a1"', '"a1b2c3d4e"'],
  },
  {
    name: 'a record of numbers',
    schema: {
      type: 'object',
      propertyNames: { type: 'string' },
      additionalProperties: { type: 'number' },
      minProperties: 1,
    },
    accepts: ['{"a": 1}', '{"a": 1, "b c": -2.5}'],
    rejects: ['{}', '{"a": "b"}'],
  },
  {
    name: 'a 32-bit integer',
    schema: { type: 'integer', format: 'int32' },
    accepts: ['0', '-2147483648', '2147483647', '1999999999'],
    rejects: ['2147483648', '-2147483649', '9999999999'],
  },
  {
    name: 'dates with the right days',
    schema: { type: 'string', format: 'date' },
    accepts: ['"2024-02-29"', '"2000-02-29"', '"2023-12-31"', '"1999-04-30"'],
    rejects: ['"2023-02-29"', '"1900-02-29"', '"2023-04-31"', '"2023-13-01"', '"2023-00-10"'],
  },
  {
    name: 'common formats',
    schema: {
      type: 'array',
      prefixItems: ['date-time', 'uuid', 'email', 'ipv4', 'ipv6', 'hostname', 'uri', 'time'].map(
        (format) => ({
          type: 'string',
          format,
        }),
      ),
      items: false,
      minItems: 8,
    },
    accepts: [
      '["2024-01-31T23:59:59.123Z", "123e4567-e89b-12d3-a456-426614174000", "a.b+c@example.com", "192.168.0.255", "2001:db8::ff00:42:8329", "api.example.com", "https://example.com:8080/a/b?c=d#e", "12:00:00+02:00"]',
    ],
    rejects: ['[]'],
  },
  {
    name: 'a nullable type, from a list of types',
    schema: { type: ['string', 'null'] },
    accepts: ['null', '"x"'],
    rejects: ['1', 'nul'],
  },
  {
    name: 'anything',
    schema: true,
    accepts: ['{"a": [1, -2.5e10, "x", {}, []], "b": null}', 'true', '0', '"x"'],
    rejects: ['', '{', '01', 'truefalse', '{"a" : 1}'],
  },
  {
    name: 'long strings stay bounded',
    schema: { type: 'string', maxLength: 2500 },
    accepts: ['""', `"${'a'.repeat(999)}"`, `"${'a'.repeat(2001)}"`, `"${'a'.repeat(2500)}"`],
    rejects: [`"${'a'.repeat(2501)}"`, `"${'a'.repeat(5000)}"`],
  },
  {
    name: 'no more members than allowed',
    schema: {
      type: 'object',
      properties: { a: { const: 1 }, b: { const: 2 }, c: { const: 3 } },
      minProperties: 1,
      maxProperties: 2,
    },
    accepts: ['{"a": 1}', '{"a": 1, "c": 3}', '{"c": 3}'],
    rejects: ['{}', '{"a": 1, "b": 2, "c": 3}'],
  },
  {
    name: 'one of two members',
    schema: {
      type: 'object',
      properties: { a: { type: 'null' }, b: { type: 'null' }, c: { type: 'null' } },
      oneOf: [{ required: ['a'] }, { required: ['b'] }],
    },
    accepts: ['{"a": null}', '{"b": null, "c": null}'],
    rejects: ['{}', '{"a": null, "b": null}', '{"c": null}'],
  },
];
