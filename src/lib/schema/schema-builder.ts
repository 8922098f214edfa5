// JSON Schema literals with TypeBox's types. TypeBox's own builders would cost every start 20 MB and a
// tenth of a second for objects that are this plain.

import type { Type as TypeBox } from 'typebox';

type Schema = Record<string, unknown>;
type Options = Record<string, unknown> | undefined;

/** Optional is a property of the member, not of its schema, so it is kept beside it. */
const optional = new WeakSet<object>();

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
  Tuple: (items: Schema[], options?: Options) => ({
    type: 'array',
    prefixItems: items,
    minItems: items.length,
    maxItems: items.length,
    ...options,
  }),
  Union: (anyOf: Schema[], options?: Options) => ({ anyOf, ...options }),
  Record: (_key: Schema, additionalProperties: Schema, options?: Options) => ({
    type: 'object',
    additionalProperties,
    ...options,
  }),
  Optional(schema: Schema) {
    const copy = { ...schema };
    optional.add(copy);
    return copy;
  },
  Object(properties: Record<string, Schema>, options?: Options) {
    const required = Object.keys(properties).filter(
      (name) => !optional.has(properties[name] ?? {}),
    );
    return { type: 'object', properties, ...(required.length > 0 && { required }), ...options };
  },
};

export const Type = builders as unknown as Pick<typeof TypeBox, keyof typeof builders>;
