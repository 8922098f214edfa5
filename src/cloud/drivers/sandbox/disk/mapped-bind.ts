// Binds a directory so that files with the ids on disk appear with the ids of one machine. util-linux can do
// this only since 2.39, so the server writes its own program for it.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { type FileHandle, open, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { DriverError } from '#cloud/drivers/driver.ts';
import { installProgram } from '#cloud/drivers/sandbox/native/install.ts';
import type { Architecture } from '#cloud/drivers/sandbox/native/instructions.ts';
import { createProgram } from '#cloud/drivers/sandbox/native/program.ts';
import { diskIdBase, idCount } from './id-ranges.ts';

/** Numbers of system calls that are the same on every architecture. */
const calls = { openTree: 428, moveMount: 429, mountSetattr: 442 } as const;
const currentDirectory = { value: -100n };
const cloneAndCloseOnExec = { value: 0x80001n };
const emptyPath = { value: 0x1000n };
const moveFromEmptyPath = { value: 4n };
const mountAttributeIdMap = 0x100000n;
/** Descriptor of the user namespace that describes the translation. */
const mapDescriptor = 3;

/** Returns the program's path; null if the kernel or a file system of the folders can't translate ids. */
export async function installMappedBind(
  dataDir: string,
  folders: readonly string[],
): Promise<string | null> {
  const { arch } = process;
  if (arch !== 'x64' && arch !== 'arm64') return null;
  const file = path.join(dataDir, 'programs', 'mapped-bind');
  await installProgram(file, toMappedBindProgram(arch));
  try {
    const map = await openIdMap(diskIdBase);
    try {
      for (const folder of folders) {
        const argv = ['--mount', '--propagation', 'private', file, folder, folder];
        const probe = spawn('unshare', argv, { stdio: ['ignore', 'ignore', 'ignore', map.fd] });
        const [code] = await once(probe, 'close');
        if (code !== 0) return null;
      }
    } finally {
      await map.close();
    }
    return file;
  } catch {
    return null;
  }
}

/** Takes a source and a target as arguments and the translation as descriptor 3. */
function toMappedBindProgram(architecture: Architecture): Buffer {
  const program = createProgram(architecture);
  const nothing = program.place(Buffer.from('\0'));
  const attributes = Buffer.alloc(32);
  attributes.writeBigUInt64LE(mountAttributeIdMap);
  attributes.writeBigUInt64LE(BigInt(mapDescriptor), 24);
  program.call({
    number: calls.openTree,
    arguments: [currentDirectory, { argv: 1 }, cloneAndCloseOnExec],
    keep: true,
  });
  const size = { value: BigInt(attributes.length) };
  program.call({
    number: calls.mountSetattr,
    arguments: ['kept', nothing, emptyPath, program.place(attributes), size],
  });
  program.call({
    number: calls.moveMount,
    arguments: ['kept', nothing, currentDirectory, { argv: 2 }, moveFromEmptyPath],
  });
  return program.toExecutable();
}

/**
 * Opens a user namespace that translates the ids on disk to those from `base`. It has no process: the open
 * descriptor keeps it. The host's root stays itself, because it prepares the disk.
 */
export async function openIdMap(base: number): Promise<FileHandle> {
  const holder = spawn('unshare', ['--user', '/bin/sh', '-c', 'echo ready; read -r end'], {
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  holder.stdin.on('error', () => {});
  const ended = once(holder, 'close');
  try {
    const ready = once(holder.stdout, 'data');
    await Promise.race([ready, ended.then(refused)]);
    for (const file of ['uid_map', 'gid_map']) {
      await writeFile(`/proc/${holder.pid}/${file}`, `0 0 1\n${diskIdBase} ${base} ${idCount}\n`);
    }
    return await open(`/proc/${holder.pid}/ns/user`);
  } finally {
    holder.stdin.end();
    await ended;
  }
}

function refused(): never {
  throw new DriverError('unavailable', 'The kernel refuses a user namespace for id maps.');
}
