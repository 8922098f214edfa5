// The programs of Millrace that run inside machines. Their text is passed to the machine's bound copy of Node,
// so that they always match this version of the server, however old the machine is.

import { readFileSync } from 'node:fs';
import type { IsolationMode } from './host.ts';

// The files beside this one are `.ts` in a clone and `.js` in a build.
const extension = import.meta.url.slice(-3);

/** The files of each program, imported ones first. They may import only Node and each other. */
const programs = {
  'sftp-server': [`sftp-packets${extension}`, `sftp-server${extension}`],
  forwarder: ['forwarder.js'],
} as const;

/** Returns the command that runs a program inside a machine. */
export function nodeInside(mode: IsolationMode, program: keyof typeof programs): string[] {
  const files = programs[program];
  const texts = files.map((name) =>
    readFileSync(new URL(`./agent/${name}`, import.meta.url), 'utf8'),
  );
  const language = files[0].endsWith('.ts') ? 'module-typescript' : 'module';
  const node = mode === 'none' ? process.execPath : '/run/machine/node';
  const flags = ['--disable-warning=ExperimentalWarning', `--input-type=${language}`];
  return [node, ...flags, '-e', joinModules(texts)];
}

/** Node takes one text: imports between the files go, and their exports become plain declarations. */
function joinModules(texts: readonly string[]): string {
  return texts
    .join('\n')
    .replaceAll(/^import [^;]+ from '\.\/[^']+';$/gm, '')
    .replaceAll(/^export /gm, '');
}
