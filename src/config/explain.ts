// A schema violation in words: what is wrong, what is allowed, and the name that was probably meant.

import type { TSchema } from 'typebox';
import { toPathText, type Violation, valueAt } from '#lib/schema/validation-error.ts';
import { nearest } from '#lib/text/nearest.ts';
import { ConfigSchema } from './schema.ts';

export function explain(violation: Violation, tree: unknown): string {
  const { kind, path, expected } = violation;
  const name = toPathText(path);
  const got = show(path, tree);
  switch (kind) {
    case 'unknown_member':
      return explainUnknown(path, name);
    case 'type':
      return `${name} must be ${expected.map((type) => typeNames[type] ?? type).join(' or ')}, got ${got}.`;
    case 'too_small':
    case 'too_large':
      return `${name} must be ${toRange(path)}, got ${got}.`;
    case 'not_allowed':
      return `${name} must be one of ${expected.join(', ')}, got ${got}.`;
    case 'missing':
      return `${name} is missing.`;
    case 'too_long':
      return `${name} must have at most ${expected[0]} characters.`;
    case 'too_many':
      return `${name} must have at most ${expected[0]} entries.`;
    case 'too_short':
      return `${name} must not be empty.`;
    case 'format':
      return `${name} ${formOf(path, name) ?? 'does not have the right form'}.`;
    default:
      return `${name} is not valid.`;
  }
}

const typeNames: Record<string, string> = {
  integer: 'an integer',
  number: 'a number',
  string: 'a string',
  boolean: 'true or false',
  array: 'a list',
  object: 'a map of settings',
};

function toRange(path: Violation['path']): string {
  const { minimum, exclusiveMinimum, maximum } = schemaAt(path) ?? {};
  const upper = maximum === undefined ? '' : ` and at most ${maximum}`;
  if (exclusiveMinimum !== undefined) return `more than ${exclusiveMinimum}${upper}`;
  return maximum === undefined ? `at least ${minimum}` : `between ${minimum} and ${maximum}`;
}

const secrets = ['api_key', 'headers', 'otlp_headers', 'hub_token', 'secret_key', 'metrics_key'];

/** The value as it stands, unless it is or may contain a secret. */
function show(path: Violation['path'], tree: unknown): string {
  if (path.some((part) => secrets.includes(String(part)))) return 'something else';
  const value = valueAt(tree, path);
  if (Array.isArray(value)) return 'a list';
  return typeof value === 'object' && value !== null ? 'a map' : JSON.stringify(value);
}

const webAddress = 'must be a URL that begins with http:// or https:// and has no ?, # or @';

/** The meaning of each pattern. */
const forms: Record<string, string> = {
  'server.public_url': webAddress,
  'server.allowed_hosts':
    'must be the name of a host without port, such as cloud.example.com, or "*"',
  'server.metrics_key': 'must have 16 to 256 printable characters without spaces',
  'inference.allowed_origins':
    'must be an origin such as https://app.example.com, without a path, or "*"',
  'models.hub_url': webAddress,
  'telemetry.otlp_url': webAddress,
  'models.hub_token': 'must consist of printable characters without spaces',
  'database.url': 'must begin with postgres:// or postgresql://',
  'redis.url': 'must begin with redis:// or rediss://',
  'models.catalog':
    'has an invalid model id. An id has at most 100 characters: letters, digits and . _ : / @ -',
  'models.aliases':
    'has an invalid alias. An alias begins with a letter or *, and has at most 100 characters: letters, digits and . _ : / @ - *',
  secret_key: 'must be 32 bytes in base64. Create one with `openssl rand -base64 32`',
};

const backendForms: Record<string, string> = {
  name: 'must have at most 64 characters: letters, digits, dots, dashes and underscores',
  url: webAddress,
  api_key: 'must consist of printable characters without spaces',
  api_key_env: 'must be the name of an environment variable',
};

/** Backends are in a list, so their members are found by the last name of the path. */
const formOf = (path: Violation['path'], name: string) =>
  forms[name.replace(/\[\d+\]$/, '')] ??
  (path[3] === 'backends' ? backendForms[String(path.at(-1))] : undefined);

/** Settings that had another name in an earlier release. */
const renamed: Record<string, string> = {
  'models.health.eject_seconds_most': 'models.health.max_eject_seconds',
};

function explainUnknown(path: Violation['path'], name: string): string {
  const newName = renamed[name];
  if (newName !== undefined) return `${name} was renamed. Use ${newName}.`;
  const parent = path.slice(0, -1);
  const last = String(path.at(-1));
  const nested = last.split('.');
  if (nested.length > 1 && schemaAt([...parent, ...nested]) !== undefined) {
    const [outer, ...inner] = nested;
    return `${name} must be nested: write ${outer}: and below it, indented, ${inner.join('.')}:.`;
  }
  const known = Object.keys(schemaAt(parent)?.properties ?? {});
  const match = nearest(last, known);
  const hint =
    match === undefined
      ? `Settings here: ${known.join(', ')}.`
      : `Did you mean ${toPathText([...parent, match])}?`;
  return `${name} is not a setting. ${hint}`;
}

interface SchemaNode {
  description?: string;
  type?: unknown;
  properties?: Record<string, TSchema>;
  items?: TSchema;
  additionalProperties?: TSchema | boolean;
  minimum?: number;
  exclusiveMinimum?: number;
  maximum?: number;
}

/** The schema of a setting; undefined if there is no such setting. */
export function schemaAt(path: readonly (string | number)[]): SchemaNode | undefined {
  return path.reduce<SchemaNode | undefined>((node, part) => {
    const { properties, items, additionalProperties: any } = node ?? {};
    return properties?.[part] ?? items ?? (typeof any === 'object' ? any : undefined);
  }, ConfigSchema);
}
