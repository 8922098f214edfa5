// The program that every process of a machine runs through: it installs the filter on itself, and executes the
// command in its arguments, whose descendants inherit the filter.

import { execFile } from 'node:child_process';
import path from 'node:path';
import { promisify } from 'node:util';
import { installProgram } from '#cloud/drivers/sandbox/native/install.ts';
import type { Architecture } from '#cloud/drivers/sandbox/native/instructions.ts';
import { createProgram } from '#cloud/drivers/sandbox/native/program.ts';
import { type FilterOptions, toFilter } from './filter.ts';

const execute = promisify(execFile);

const calls = {
  x64: { seccomp: 317, execve: 59 },
  arm64: { seccomp: 277, execve: 221 },
} as const;
const setModeFilter = 1n;
/** Keeps the speculation that the kernel allows other processes; without it, older kernels slow machines down. */
const allowSpeculation = 4n;

/** Returns the path of the installed program; null if this host can't install a filter. */
export async function installConfine(
  dataDir: string,
  options: FilterOptions,
): Promise<string | null> {
  const { arch } = process;
  if (arch !== 'x64' && arch !== 'arm64') return null;
  const file = path.join(dataDir, 'programs', options.nested ? 'confine-nested' : 'confine');
  await installProgram(file, toConfineProgram(arch, options));
  const [program, ...argv] = [...toPrefix(file), 'true'];
  return execute(program!, argv, { timeout: 10_000 }).then(
    () => file,
    () => null,
  );
}

/**
 * Command prefix that installs the filter. An ordinary user must give up set-uid programs for it, which could not work
 * in its machines anyway.
 */
export function toPrefix(confine: string | null): string[] {
  if (confine === null) return [];
  const asUser = process.getuid?.() === 0 ? [] : ['setpriv', '--no-new-privs'];
  return [...asUser, confine, '/usr/bin/env'];
}

/** The caller must have CAP_SYS_ADMIN in its user namespace, or have set `no_new_privs`. */
function toConfineProgram(architecture: Architecture, options: FilterOptions): Buffer {
  const program = createProgram(architecture);
  const filter = toFilter(architecture, options);
  const description = Buffer.alloc(16);
  description.writeUInt16LE(filter.length / 8);
  description.writeBigUInt64LE(program.place(filter).value, 8);
  const { seccomp, execve } = calls[architecture];
  program.call({
    number: seccomp,
    arguments: [{ value: setModeFilter }, { value: allowSpeculation }, program.place(description)],
  });
  program.call({ number: execve, arguments: [{ argv: 1 }, 'command', 'environment'] });
  return program.toExecutable();
}
