// Fills in the defaults of a schema, also inside lists and maps.

import type { TSchema } from 'typebox';

export type Tree = Record<string, unknown>;

interface SchemaParts {
  type?: unknown;
  required?: string[];
  properties?: Record<string, TSchema>;
  default?: unknown;
  items?: TSchema;
  additionalProperties?: TSchema | boolean;
}

/** Values of the wrong type stay as they are: validation reports them. */
export function withDefaults(schema: TSchema, value: unknown): unknown {
  const parts = schema as SchemaParts;
  if (parts.properties === undefined) return withDefaultsOfEntries(parts, value);
  const mayBeNull = Array.isArray(parts.type) && parts.type.includes('null');
  if (value !== undefined && !isTree(value) && (value !== null || mayBeNull)) return value;
  const given = (value ?? {}) as Tree;
  const filled: Tree = { ...given };
  for (const [name, member] of Object.entries(parts.properties)) {
    if (given[name] === undefined && !parts.required?.includes(name)) continue;
    const full = withDefaults(member, given[name]);
    if (full !== undefined) filled[name] = full;
  }
  return filled;
}

/** Fills in the entries of a list or a map with arbitrary names; a plain value stays as it is. */
function withDefaultsOfEntries(
  { default: fallback, items, additionalProperties }: SchemaParts,
  value: unknown,
): unknown {
  if (value === undefined) return fallback;
  if (items !== undefined && Array.isArray(value)) {
    return value.map((item) => withDefaults(items, item));
  }
  if (typeof additionalProperties !== 'object' || !isTree(value)) return value;
  const entries = Object.entries(value);
  return Object.fromEntries(
    entries.map(([name, item]) => [name, withDefaults(additionalProperties, item)]),
  );
}

const isTree = (value: unknown): value is Tree =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
