// A stand-in for nvidia-smi, first in the search path of this process.

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after } from 'node:test';
import { makeFolder } from './process.ts';

export interface NvidiaSmiOutput {
  /** Lines with UUID, model, load, memory in use and memory. */
  readonly gpus?: readonly string[];
  /** Lines with the UUID of a GPU, a process id and memory in use. */
  readonly processes?: readonly string[];
  readonly fails?: boolean;
}

const searchPath = process.env.PATH;
after(() => {
  process.env.PATH = searchPath;
});

/** Writes it into a folder, and returns the search path that finds it there. */
export function writeNvidiaSmi({ gpus = [], processes = [], fails }: NvidiaSmiOutput): string {
  const folder = makeFolder();
  const print = (lines: readonly string[]) =>
    `printf '%s\\n' ${lines.map((one) => `'${one}'`).join(' ')}`;
  const script = `#!/bin/sh
echo "$*" >> ${folder}/calls
${fails ? 'exit 9' : ''}
case "$*" in
  *--query-compute-apps=*) ${print(processes)} ;;
  *utilization.gpu*) ${print(gpus)} ;;
esac
`;
  writeFileSync(join(folder, 'calls'), '');
  writeFileSync(join(folder, 'nvidia-smi'), script, { mode: 0o755 });
  return `${folder}:${searchPath}`;
}

/** Until the tests of the file have ended, or another one is used. Returns a function that lists its calls so far. */
export function useNvidiaSmi(output: NvidiaSmiOutput): () => string[] {
  const path = writeNvidiaSmi(output);
  process.env.PATH = path;
  return () =>
    readFileSync(join(path.split(':')[0] ?? '', 'calls'), 'utf8')
      .split('\n')
      .slice(0, -1);
}
