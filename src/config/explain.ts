// A wrong setting in words: what it is, what it must be, and the name that was probably meant.

import type { TSchema } from 'typebox';
import { nearest } from '../lib/nearest.ts';
import { toPathText, type Violation } from '../lib/schema.ts';
import { ConfigSchema } from './schema.ts';

export function explain({ kind, path, expected, exclusive }: Violation, tree: unknown): string {
  const name = toPathText(path);
  const shown = JSON.stringify(
    path.reduce<unknown>((node, part) => (node as Record<string, unknown>)?.[part], tree),
  );
  switch (kind) {
    case 'unknown_member':
      return explainUnknown(path, name);
    case 'type':
      return `${name} is ${shown}, but must be ${expected.join(' or ')}.`;
    case 'too_small':
      return `${name} is ${shown}, but must be ${exclusive ? 'more than' : 'at least'} ${expected[0]}.`;
    case 'too_large':
      return `${name} is ${shown}, but must be ${exclusive ? 'less than' : 'at most'} ${expected[0]}.`;
    case 'not_allowed':
      return `${name} is ${shown}, but must be one of ${expected.join(', ')}.`;
    case 'too_short':
      return `${name} must not be empty.`;
    case 'format':
      return `${name} ${forms[name] ?? 'does not have the right form'}.`;
    default:
      return `${name} is not valid.`;
  }
}

const webAddress = 'must be an address that begins with http:// or https://, without ?, # or @';

/** What a pattern means. */
const forms: Record<string, string> = {
  'server.public_url': webAddress,
  'models.hub_url': webAddress,
  'models.hub_token': 'must be printable characters without spaces',
  'database.url': 'must begin with postgres:// or postgresql://',
};

function explainUnknown(path: Violation['path'], name: string): string {
  const parent = path.slice(0, -1);
  const last = String(path.at(-1));
  const nested = last.split('.');
  if (nested.length > 1 && schemaAt([...parent, ...nested]) !== undefined) {
    const [outer, ...inner] = nested;
    return `${name} is one name, but settings are nested: write ${outer}: and ${inner.join('.')}: below it.`;
  }
  const known = Object.keys(schemaAt(parent)?.properties ?? {});
  const match = nearest(last, known);
  const hint =
    match === undefined
      ? `Known here: ${known.join(', ')}.`
      : `Did you mean ${toPathText([...parent, match])}?`;
  return `${name} is not a setting. ${hint}`;
}

interface SchemaNode {
  type?: unknown;
  properties?: Record<string, TSchema>;
  items?: TSchema;
}

export function schemaAt(path: readonly (string | number)[]): SchemaNode | undefined {
  return path.reduce<SchemaNode | undefined>(
    (node, part) => (typeof part === 'number' ? node?.items : node?.properties?.[part]),
    ConfigSchema,
  );
}
