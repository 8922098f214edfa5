// A stand-in for nvidia-smi, first in the search path of this process and of servers that it starts.

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after } from 'node:test';
import { makeFolder } from './process.ts';

export interface NvidiaSmiOutput {
  /** Lines with UUID, model, load, memory in use and memory. */
  readonly gpus?: readonly string[];
  /** Lines with the UUID of a GPU, a process id and memory in use. */
  readonly processes?: readonly string[];
}

export interface NvidiaSmi {
  /** The arguments of each call so far. */
  calls(): string[];
  print(output: NvidiaSmiOutput): void;
  /** For tests that share their process with others. */
  remove(): void;
}

const searchPath = process.env.PATH;
const remove = () => {
  process.env.PATH = searchPath;
};
after(remove);

const script = `#!/bin/sh
cd "\${0%/*}" || exit
echo "$*" >>calls
case "$*" in
  *--query-compute-apps=*) cat processes ;;
  *utilization.gpu*) cat gpus ;;
esac
`;

/** It is found until the tests of the file have ended, or another one is used. With null, it fails. */
export function useNvidiaSmi(output: NvidiaSmiOutput | null): NvidiaSmi {
  const folder = makeFolder();
  const write = (name: string, lines: readonly string[] = []) =>
    writeFileSync(join(folder, name), lines.map((line) => `${line}\n`).join(''));
  const print = ({ gpus, processes }: NvidiaSmiOutput) => {
    write('gpus', gpus);
    write('processes', processes);
  };
  write('calls');
  if (output !== null) print(output);
  writeFileSync(join(folder, 'nvidia-smi'), script, { mode: 0o755 });
  process.env.PATH = `${folder}:${searchPath}`;
  const calls = () => readFileSync(join(folder, 'calls'), 'utf8').split('\n').slice(0, -1);
  return { calls, print, remove };
}
