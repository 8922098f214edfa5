// Writes the pages of docs/ that follow from the code: errors, commands, settings and benchmarks. Run it by
// `npm run docs`; a test fails while a page is out of date.

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Argument, Command, Option } from 'commander';
import type { TSchema } from 'typebox';
import { createProgram } from '#cli/program.ts';
import { overrides } from '#config/overrides.ts';
import { ConfigSchema } from '#config/schema.ts';
import {
  cloudErrors,
  type DescribedError,
  inferenceErrors,
} from '#server/openapi/error-catalog.ts';

const root = join(import.meta.dirname, '..');
const generated = '<!-- Written by `npm run docs`. -->';

/** The text of each generated page by its path. */
export const renderPages = async (): Promise<Record<string, string>> => ({
  'docs/errors.md': renderErrors(),
  'docs/commands.md': await renderCommands(),
  'docs/settings.md': renderSettings(),
  'docs/benchmarks.md': renderBenchmarks(),
});

const cell = (text: string) => escapeHtml(text).replaceAll('|', '\\|').replaceAll('\n', ' ');
/** Outside of code, `<` would begin an HTML element. */
const escapeHtml = (text: string) =>
  text
    .split('`')
    .map((part, index) => (index % 2 === 0 ? part.replaceAll('<', '&lt;') : part))
    .join('`');
const table = (header: string[], rows: string[][]) =>
  [header, header.map(() => '---'), ...rows]
    .map((row) => `| ${row.map(cell).join(' | ')} |`)
    .join('\n');

function renderErrors(): string {
  const section = (title: string, errors: readonly DescribedError[]) =>
    `## ${title}\n\n${table(
      ['status', 'code', 'meaning', 'what to do'],
      errors.map(({ status, code, means, fix }) => [
        String(status),
        code === null ? 'none' : `\`${code}\``,
        means,
        fix,
      ]),
    )}`;
  return `${generated}

# Errors

Programs compare the code; the message is for people. Every response has an \`x-request-id\` header. It names the
entry in the server's log, and in **Usage** on the dashboard.

${section('Inference API', inferenceErrors)}

${section('Cloud API', cloudErrors)}
`;
}

/** The description with the values that are allowed, and the default. */
function toMeaning({ description, argChoices, defaultValue }: Argument | Option): string {
  const hasDefault = typeof defaultValue === 'string' || typeof defaultValue === 'number';
  const notes = [
    ...(argChoices === undefined ? [] : [`one of ${argChoices.map(toCode).join(', ')}`]),
    ...(hasDefault ? [`default: ${toCode(defaultValue)}`] : []),
  ];
  return notes.length === 0 ? description : `${description} (${notes.join('; ')})`;
}

const toCode = (value: string | number) => `\`${value}\``;

async function renderCommands(): Promise<string> {
  const sections = listCommands(await createProgram(), []).map(({ command, path }) => {
    const usage = `./millrace ${path.join(' ')} ${command.usage()}`.trimEnd();
    const argumentRows = command.registeredArguments
      .filter(({ description }) => description)
      .map((one) => [
        `\`${one.required ? `<${one.name()}>` : `[${one.name()}]`}\``,
        toMeaning(one),
      ]);
    const optionRows = command.options
      .filter(({ hidden }) => !hidden)
      .map((one) => [`\`${one.flags}\``, toMeaning(one)]);
    const rows = [...argumentRows, ...optionRows];
    return `## ${path.join(' ')}

${sentence(command.description())}

\`\`\`sh
${usage}
\`\`\`${rows.length === 0 ? '' : `\n\n${table(['argument or option', 'meaning'], rows)}`}`;
  });
  return `${generated}

# Commands

Every command with its options. [The CLI](cli.md) says how to use them.

${sections.join('\n\n')}
`;
}

const sentence = (text: string) => escapeHtml(text.endsWith('.') ? text : `${text}.`);

/** Commands that do something, in the order of `--help`. */
function listCommands(command: Command, path: string[]): { command: Command; path: string[] }[] {
  if (command.commands.length === 0) return [{ command, path }];
  return command.commands.flatMap((child) => listCommands(child, [...path, child.name()]));
}

function renderSettings(): string {
  const { properties } = ConfigSchema as unknown as { properties: Record<string, TSchema> };
  const isSection = (schema: TSchema) => 'properties' in schema;
  const single = Object.entries(properties).filter(([, schema]) => !isSection(schema));
  const sections = Object.entries(properties).filter(([, schema]) => isSection(schema));
  return `${generated}

# Settings

Every setting of \`millrace.yaml\`. [Configuration](configuration.md) says how to set, check and reload them.

## Top level

${renderRows(single.flatMap(([name, schema]) => toRows(name, schema)))}

${sections
  .map(([name, schema]) => `## ${name}\n\n${renderRows(toRows(name, schema))}`)
  .join('\n\n')}
`;
}

const renderRows = (rows: string[][]) => table(['setting', 'default', 'meaning'], rows);

function toRows(path: string, schema: TSchema): string[][] {
  const {
    properties,
    description,
    default: value,
  } = schema as {
    properties?: Record<string, TSchema>;
    description?: string;
    default?: unknown;
  };
  if (properties !== undefined) {
    return Object.entries(properties).flatMap(([name, member]) =>
      toRows(`${path}.${name}`, member),
    );
  }
  const override = overrides.find((one) => one.path === path);
  const notes = [description, override && `Environment: \`${override.env}\`.`].filter(Boolean);
  return [[`\`${path}\``, `\`${JSON.stringify(value)}\``, notes.join(' ')]];
}

function renderBenchmarks(): string {
  const results = readFileSync(join(root, 'bench/RESULTS.md'), 'utf8');
  return `${generated}

${results.replace('# Results', '# Benchmarks').replaceAll(/\]\((?!https?:|#)/g, '](../bench/')}`;
}

if (import.meta.main) {
  for (const [file, text] of Object.entries(await renderPages()))
    writeFileSync(join(root, file), text);
}
