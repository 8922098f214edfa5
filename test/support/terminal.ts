// The CLI on a pseudo-terminal, with keys as a person presses them.

import assert from 'node:assert';
import { join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { spawn } from '@lydell/node-pty';
import { makeFolder } from './process.ts';
import { until } from './until.ts';

export const ctrlC = '\u0003';
export const ctrlD = '\u0004';

/** `act` presses the keys, or is called, once the screen shows the text. What was shown before does not count. */
export type Step = [shown: string, act: string | (() => unknown)];

/** Takes the steps in order, and resolves when the command ends. */
export async function typeMillrace(
  env: Record<string, string>,
  words: string[],
  ...steps: Step[]
): Promise<{ code: number | null; screen: string; raw: string }> {
  const program = join(import.meta.dirname, '../../millrace');
  const terminal = spawn(program, words, { cwd: makeFolder(), env, cols: 100, rows: 30 });
  let raw = '';
  let code: number | null = null;
  terminal.onData((data) => {
    raw += data;
  });
  terminal.onExit(({ exitCode, signal }) => {
    code = signal ? 128 + signal : exitCode;
  });
  const screen = () => stripVTControlCharacters(raw);
  try {
    let seen = 0;
    for (const [shown, act] of steps) {
      await until(`the screen shows ${shown}`, () => {
        if (screen().includes(shown, seen)) return true;
        assert.equal(code, null, screen());
        return false;
      });
      seen = screen().indexOf(shown, seen) + shown.length;
      if (typeof act !== 'string') await act();
      else if (code === null) terminal.write(act);
    }
    await until(`${words.join(' ')} ends`, () => code !== null);
    return { code, screen: screen(), raw };
  } finally {
    // A test that fails must not wait for a command that never ends.
    if (code === null) terminal.kill('SIGKILL');
  }
}
