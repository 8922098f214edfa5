// Renders the example file from the schema: every setting once, with its default and its description.

import type { TSchema } from 'typebox';
import { overrides } from './overrides.ts';
import { ConfigSchema } from './schema.ts';

const opening = [
  '# yaml-language-server: $schema=./millrace.schema.json',
  '# Every setting of Millrace with its default. Copy the ones you change to millrace.yaml.',
  '# Check your file with `./millrace config check`.',
];

export function renderExample(): string {
  return `${[...opening, ...render(ConfigSchema, '', '')].join('\n')}\n`;
}

function render(schema: TSchema, indent: string, path: string): string[] {
  const { properties = {} } = schema as { properties?: Record<string, TSchema> };
  return Object.entries(properties).flatMap(([name, member]) => {
    const { description, default: value } = member as { description?: string; default?: unknown };
    const full = path === '' ? name : `${path}.${name}`;
    const override = overrides.find((one) => one.path === full);
    const notes = [description, override && `Environment: ${override.env}.`]
      .filter(Boolean)
      .join(' ');
    const comment = notes === '' ? [] : [`${indent}# ${notes}`];
    if ('properties' in member) {
      return ['', ...comment, `${indent}${name}:`, ...render(member, `${indent}  `, full)];
    }
    return [...(path === '' ? [''] : []), ...comment, `${indent}${name}: ${JSON.stringify(value)}`];
  });
}
