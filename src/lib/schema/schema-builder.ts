// Builds JSON Schema literals that have TypeBox's types. TypeBox's own builders would cost every start 20 MB and
// 0.1 s for objects this plain.

import type { Static, TSchema, Type as TypeBox } from 'typebox';

export type { Static, TSchema };

type Schema = Record<string, unknown>;
type Options = Record<string, unknown> | undefined;

/** Marks the schema of an optional member. Not enumerable: JSON Schema has no such keyword. */
const optional = Symbol('optional');

const plain = (type: string) => (options?: Options) => ({ type, ...options });

const builders = {
  String: plain('string'),
  Integer: plain('integer'),
  Number: plain('number'),
  Boolean: plain('boolean'),
  Null: plain('null'),
  Unknown: (options?: Options) => ({ ...options }),
  Unsafe: (schema: Schema) => schema,
  Literal: (value: unknown, options?: Options) => ({ const: value, ...options }),
  Array: (items: Schema, options?: Options) => ({ type: 'array', items, ...options }),
  Union: (anyOf: Schema[], options?: Options) => ({ anyOf, ...options }),
  Record: (_key: Schema, additionalProperties: Schema, options?: Options) => ({
    type: 'object',
    additionalProperties,
    ...options,
  }),
  Optional(schema: Schema) {
    return Object.defineProperty({ ...schema }, optional, { value: true });
  },
  Object(properties: Record<string, Schema>, options?: Options) {
    const required = Object.keys(properties).filter(
      (name) => !Object.hasOwn(properties[name] ?? {}, optional),
    );
    return { type: 'object', properties, ...(required.length > 0 && { required }), ...options };
  },
};

export const Type = builders as unknown as Pick<typeof TypeBox, keyof typeof builders>;

/** A member that may be absent or null; both mean "not set". */
export const Maybe = <S extends TSchema>(schema: S) =>
  Type.Optional(Type.Union([schema, Type.Null()]));

/** A closed set of strings, as a JSON Schema `enum`. */
export const OneOf = <const Values extends readonly string[]>(values: Values) =>
  Type.Unsafe<Values[number]>({ type: 'string', enum: [...values] });

/** Options of an object that may have members besides those of its schema. */
export const open = { additionalProperties: true } as const;

/** Options of an object that must not have other members. */
export const closed = { additionalProperties: false } as const;

/** Patterns of texts that a database can hold: PostgreSQL takes no NUL. */
export const noNul = { any: '^[^\\u0000]*$', notEmpty: '^[^\\u0000]+$' } as const;
