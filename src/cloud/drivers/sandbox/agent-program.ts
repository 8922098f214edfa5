// The programs of ours that run inside machines. Their text is handed to the machine's bound copy of Node,
// so that they always match this version of the server, however old the machine is.

import { readFileSync } from 'node:fs';
import type { IsolationMode } from './host.ts';

/** They import nothing but Node itself. */
export function nodeInside(mode: IsolationMode, program: 'sftp-server' | 'forwarder'): string[] {
  // Beside this file: `.ts` in a clone, `.js` in a build.
  const file = new URL(`./agent/${program}${import.meta.url.slice(-3)}`, import.meta.url);
  const language = file.pathname.endsWith('.ts') ? 'module-typescript' : 'module';
  const node = mode === 'none' ? process.execPath : '/run/machine/node';
  const quiet = ['--disable-warning=ExperimentalWarning', `--input-type=${language}`];
  return [node, ...quiet, '-e', readFileSync(file, 'utf8')];
}
