// The program that every process of a machine runs through: it installs the filter on itself, and executes the
// command in its arguments, whose descendants inherit the filter.

import { execFile } from 'node:child_process';
import path from 'node:path';
import { promisify } from 'node:util';
import { installProgram } from '#cloud/drivers/sandbox/native/install.ts';
import type { Architecture } from '#cloud/drivers/sandbox/native/instructions.ts';
import { createProgram, type Program } from '#cloud/drivers/sandbox/native/program.ts';
import { type FilterOptions, toFilter } from './filter.ts';

const execute = promisify(execFile);

const calls = {
  x64: { seccomp: 317, execve: 59, unshare: 272, openat: 257, write: 1, close: 3, prctl: 157 },
  arm64: { seccomp: 277, execve: 221, unshare: 97, openat: 56, write: 64, close: 57, prctl: 167 },
} as const;
const setModeFilter = 1n;
/** Keeps the speculation that the kernel allows other processes; without it, older kernels slow machines down. */
const allowSpeculation = 4n;
const newUserNamespace = 0x10000000n;
const noNewPrivileges = 38n;
const currentDirectory = { value: -100n };
const writeOnly = { value: 1n };

/** Returns the path of the installed program; null if this host can't install a filter. */
export async function installConfine(
  dataDir: string,
  options: FilterOptions,
): Promise<string | null> {
  const file = path.join(dataDir, 'programs', options.nested ? 'confine-nested' : 'confine');
  return install(file, toPrefix(file), (program, architecture) =>
    addFilter(program, architecture, options),
  );
}

/**
 * Installs the program for process 1 of an ordinary user's machine, which is root in its user namespace at first: it
 * becomes `ubuntu` in a second one before the filter forbids that. Programs of the host would do the same, but load
 * the tenant's files.
 */
export async function installConfineAsUbuntu(
  dataDir: string,
  options: FilterOptions,
): Promise<string | null> {
  const file = path.join(
    dataDir,
    'programs',
    options.nested ? 'confine-user-nested' : 'confine-user',
  );
  const probe = ['unshare', '--user', '--map-root-user', file, '/usr/bin/env'];
  return install(file, probe, (program, architecture) => {
    becomeUbuntu(program, architecture);
    addFilter(program, architecture, options);
  });
}

async function install(
  file: string,
  prefix: readonly string[],
  addCalls: (program: Program, architecture: Architecture) => void,
): Promise<string | null> {
  const { arch } = process;
  if (arch !== 'x64' && arch !== 'arm64') return null;
  const program = createProgram(arch);
  addCalls(program, arch);
  program.call({
    number: calls[arch].execve,
    arguments: [{ argv: 1 }, 'command', 'environment'],
  });
  await installProgram(file, program.toExecutable());
  const [command, ...argv] = [...prefix, 'true'];
  return execute(command!, argv, { timeout: 10_000 }).then(
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
function addFilter(program: Program, architecture: Architecture, options: FilterOptions) {
  const filter = toFilter(architecture, options);
  const description = Buffer.alloc(16);
  description.writeUInt16LE(filter.length / 8);
  description.writeBigUInt64LE(program.place(filter).value, 8);
  program.call({
    number: calls[architecture].seccomp,
    arguments: [{ value: setModeFilter }, { value: allowSpeculation }, program.place(description)],
  });
}

function becomeUbuntu(program: Program, architecture: Architecture) {
  const { unshare, openat, write, close, prctl } = calls[architecture];
  program.call({ number: unshare, arguments: [{ value: newUserNamespace }] });
  const settings = { setgroups: 'deny', uid_map: '1000 0 1', gid_map: '1000 0 1' };
  for (const [name, text] of Object.entries(settings)) {
    const file = program.place(Buffer.from(`/proc/self/${name}\0`));
    program.call({ number: openat, arguments: [currentDirectory, file, writeOnly], keep: true });
    const size = { value: BigInt(text.length) };
    program.call({ number: write, arguments: ['kept', program.place(Buffer.from(text)), size] });
    program.call({ number: close, arguments: ['kept'] });
  }
  const zero = { value: 0n };
  program.call({
    number: prctl,
    arguments: [{ value: noNewPrivileges }, { value: 1n }, zero, zero, zero],
  });
}
