// Secrets come from files and pipes, never from flags: every user of the computer can read a command line.

import { readFileSync } from 'node:fs';
import { toReason } from '#lib/start-error.ts';
import { CliError } from './output.ts';

/** `-` is standard input. */
export function readSecret(file: string): string {
  try {
    return readFileSync(file === '-' ? 0 : file, 'utf8').trim();
  } catch (error) {
    throw new CliError(`Can't read ${file}: ${toReason(error)}.`);
  }
}
