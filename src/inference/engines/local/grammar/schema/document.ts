// The schema as a document: its size is checked before any recursion over it, and references are resolved in it.

import type { Located } from './type-constraints.ts';
import { join, UnsupportedSchema } from './unsupported-schema.ts';

const maxDepth = 200;
const maxNodes = 50_000;
const maxCharacters = 1_000_000;

/** True for an object that is not a list. */
export const isMembers = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

export interface SchemaDocument {
  /** The schema that `#/$defs/name` refers to. Throws if the reference leaves the schema or finds nothing. */
  resolve(reference: unknown, path: string): Located;
}

export function createSchemaDocument(root: unknown): SchemaDocument {
  checkSize(root);
  return {
    resolve(reference, path) {
      if (typeof reference !== 'string' || !/^#(?:\/|$)/.test(reference)) {
        throw new UnsupportedSchema(path, '$ref', 'must point into the schema itself');
      }
      let schema = root;
      let location = '';
      for (const part of reference.split('/').slice(1)) {
        const segment = decode(part, path).replaceAll('~1', '/').replaceAll('~0', '~');
        if (typeof schema !== 'object' || schema === null || !Object.hasOwn(schema, segment)) {
          throw new UnsupportedSchema(path, '$ref', 'points at nothing');
        }
        schema = (schema as Record<string, unknown>)[segment];
        location = join(location, segment);
      }
      return { schema, path: location };
    },
  };
}

function decode(part: string, path: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    throw new UnsupportedSchema(path, '$ref', 'is not a valid reference');
  }
}

function checkSize(root: unknown): void {
  let nodes = 0;
  let characters = 0;
  const queue: [value: unknown, depth: number][] = [[root, 0]];
  for (let next = queue.pop(); next; next = queue.pop()) {
    const [value, depth] = next;
    if (depth > maxDepth) throw new UnsupportedSchema('', '', 'is nested too deeply');
    if (++nodes > maxNodes) throw new UnsupportedSchema('', '', 'has too many parts');
    if (typeof value === 'string') characters += value.length;
    if (typeof value === 'number' && !Number.isFinite(value)) {
      throw new UnsupportedSchema('', '', 'has a number that is too large');
    }
    if (typeof value === 'object' && value !== null) {
      for (const [name, member] of Object.entries(value)) {
        characters += name.length;
        queue.push([member, depth + 1]);
      }
    }
    if (characters > maxCharacters) throw new UnsupportedSchema('', '', 'is too long');
  }
}
