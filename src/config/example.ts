// Renders the schema as the example file: every setting once, at its default, explained.

import type { TSchema } from 'typebox';
import { ConfigSchema, overrides } from './schema.ts';

const opening = [
  '# yaml-language-server: $schema=./millrace.schema.json',
  '# Every setting of Millrace at its default. Copy what you change to millrace.yaml.',
  '# Check a file with `./millrace config check`.',
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
    const notes = [description, override && `Also ${override.env}.`].filter(Boolean).join(' ');
    const comment = notes === '' ? [] : [`${indent}# ${notes}`];
    if ('properties' in member) {
      return ['', ...comment, `${indent}${name}:`, ...render(member, `${indent}  `, full)];
    }
    return [...(path === '' ? [''] : []), ...comment, `${indent}${name}: ${JSON.stringify(value)}`];
  });
}
