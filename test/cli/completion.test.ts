// The completion scripts in their shells, where these are installed.

import assert from 'node:assert';
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { callMillrace, makeFolder } from '#test/support/process.ts';
import { needs } from '#test/support/programs.ts';

async function writeScript(shell: string): Promise<string> {
  const { code, stdout, stderr } = await callMillrace(['completion', shell]);
  assert.equal(code, 0, stderr);
  const file = join(makeFolder(), `millrace.${shell}`);
  writeFileSync(file, stdout);
  return file;
}

describe('millrace completion', () => {
  test('bash completes commands, subcommands and options, also after arguments', async () => {
    const file = await writeScript('bash');
    const complete = (...words: string[]) => {
      const line = `source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _millrace; echo "\${COMPREPLY[@]}"`;
      const all = ['-c', line, 'bash', file, 'millrace', ...words];
      return execFileSync('bash', all, { encoding: 'utf8' }).trim();
    };
    assert.equal(complete('inst'), 'instances');
    assert.equal(complete('instances', 're'), 'rename restart');
    assert.equal(complete('instances', 'terminate', 'list', '--y'), '--yes');
    assert.equal(complete('status', '--'), '--json --watch --interval --context --help');
    assert.equal(complete('keys', 'create', 'x', '--exp'), '--expires');
  });

  for (const shell of ['zsh', 'fish']) {
    test(`${shell} accepts its script`, { skip: needs(shell) }, async () => {
      const file = await writeScript(shell);
      execFileSync(shell, ['-n', file]);
    });
  }

  test('every script names every command, and descriptions can not end a string', async () => {
    for (const shell of ['zsh', 'fish']) {
      const { stdout } = await callMillrace(['completion', shell]);
      for (const word of ['doctor', 'instances', 'rename', '--watch'])
        assert(stdout.includes(word.replace('--', '')), `${shell} ${word}`);
      assert.match(stdout, shell === 'zsh' ? /server'\\''s disk/ : /server\\'s disk/);
    }
    assert.equal((await callMillrace(['completion', 'tcsh'])).code, 2);
  });
});
