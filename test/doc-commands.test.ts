// Every command that the documentation, the dashboard or a message shows exists, with the options that it is given.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Command } from 'commander';
import { createProgram } from '#cli/program.ts';

const root = join(import.meta.dirname, '..');
const files = execFileSync('git', ['ls-files', '-co', '--exclude-standard'], {
  cwd: root,
  encoding: 'utf8',
})
  .split('\n')
  .filter((file) => /\.md$|^(src|web)\/.*\.tsx?$/.test(file) && existsSync(join(root, file)));

/** Commands in fences, and in code inside of sentences and string templates. */
function findCommands(text: string): string[] {
  const joined = text.replaceAll(/\\\n\s*/g, '');
  const fences = [...joined.matchAll(/```sh\n([\s\S]*?)```/g)].flatMap(([, code]) =>
    (code ?? '').split('\n'),
  );
  const inline = [...joined.matchAll(/`([^`\n]+)`|command="([^"]+)"/g)].map(([, code, command]) =>
    (code ?? command ?? '').replace(/\\$/, ''),
  );
  return [...fences, ...inline].flatMap((line) => {
    const [, command] = /^(?:sudo )?(?:\S+=\S+ )*(?:\.\/|npx )?millrace( .*)$/.exec(line) ?? [];
    return command === undefined ? [] : [command];
  });
}

/** The words up to a comment or another program. Brackets around what may be left out are dropped. */
const toWords = (command: string) =>
  (command.split(/ (?:#|\||>|<|&&|&|;) ?/)[0] ?? '')
    // The argument of an engine may look like an option.
    .replaceAll(/--arg \S+/g, '--arg value')
    .replaceAll(/"[^"]*"|'[^']*'|<[^>]*>|\$\{[^}]*\}/g, 'value')
    .split(/[\s[\]]+/)
    .filter((word) => word !== '');

/** What is wrong with a command; null if nothing is. */
function findProblem(program: Command, words: string[]): string | null {
  let command = program;
  let at = 0;
  for (; at < words.length; at++) {
    const next = command.commands.find((one) => one.name() === words[at]);
    if (next === undefined) break;
    command = next;
  }
  const [first = ''] = words.slice(at);
  if (command.commands.length > 0 && /^[a-z]/.test(first) && first !== 'value' && first !== 'help')
    return `there is no command ${first}`;
  const known = [...command.options, ...program.options].flatMap(({ long, short }) => [
    long,
    short,
  ]);
  const unknown = words
    .slice(at)
    .filter((word) => /^--?[a-z]/i.test(word))
    .map((word) => word.split('=')[0] ?? word)
    .filter((word) => !known.includes(word) && word !== '--help' && word !== '-h');
  return unknown.length === 0 ? null : `there is no ${unknown.join(', ')}`;
}

test('every command that is shown exists, with its options', async () => {
  const program = await createProgram();
  const found = files.flatMap((file) =>
    findCommands(readFileSync(join(root, file), 'utf8')).map((command) => ({ file, command })),
  );
  assert(found.length > 200, `${found.length} commands were found`);
  const wrong = found.flatMap(({ file, command }) => {
    const problem = findProblem(program, toWords(command));
    return problem === null ? [] : [`${file}: millrace${command}: ${problem}`];
  });
  assert.deepEqual(wrong, []);
});
