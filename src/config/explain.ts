// A wrong setting in words: what it is, what it must be, and the name that was probably meant.

import type { TSchema } from 'typebox';
import { nearest } from '#lib/nearest.ts';
import { toPathText, type Violation, valueAt } from '#lib/schema/validation-error.ts';
import { ConfigSchema } from './schema.ts';

export function explain({ kind, path, expected, exclusive }: Violation, tree: unknown): string {
  const name = toPathText(path);
  const shown = show(path, tree);
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
    case 'missing':
      return `${name} is missing.`;
    case 'too_long':
      return `${name} is longer than ${expected[0]} characters.`;
    case 'too_many':
      return `${name} has more than ${expected[0]} entries.`;
    case 'too_short':
      return `${name} must not be empty.`;
    case 'format':
      return `${name} ${formOf(path, name) ?? 'does not have the right form'}.`;
    default:
      return `${name} is not valid.`;
  }
}

const secrets = ['api_key', 'headers', 'hub_token', 'secret_key'];

/** What stands there; not what is or may hold a secret. */
function show(path: Violation['path'], tree: unknown): string {
  if (path.some((part) => secrets.includes(String(part)))) return 'something else';
  const value = valueAt(tree, path);
  if (Array.isArray(value)) return 'a list';
  return typeof value === 'object' && value !== null ? 'a map' : JSON.stringify(value);
}

const webAddress = 'must be an address that begins with http:// or https://, without ?, # or @';

/** What a pattern means. */
const forms: Record<string, string> = {
  'server.public_url': webAddress,
  'models.hub_url': webAddress,
  'models.hub_token': 'must be printable characters without spaces',
  'database.url': 'must begin with postgres:// or postgresql://',
  'models.catalog': 'has an id that is not up to 100 letters, digits and . _ : / @ -',
  secret_key: 'must be 32 bytes in base64, such as `openssl rand -base64 32` prints',
};

const backendForms: Record<string, string> = {
  name: 'must be letters, digits, dots, dashes and underscores, 64 at most',
  url: webAddress,
  api_key: 'must be printable characters without spaces',
  api_key_env: 'must be the name of an environment variable',
};

/** Of a setting, or of a member of a backend, whose place in the list says nothing. */
const formOf = (path: Violation['path'], name: string) =>
  forms[name] ?? (path[3] === 'backends' ? backendForms[String(path.at(-1))] : undefined);

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
  additionalProperties?: TSchema | boolean;
}

export function schemaAt(path: readonly (string | number)[]): SchemaNode | undefined {
  return path.reduce<SchemaNode | undefined>((node, part) => {
    const { properties, items, additionalProperties: any } = node ?? {};
    return properties?.[part] ?? items ?? (typeof any === 'object' ? any : undefined);
  }, ConfigSchema);
}
