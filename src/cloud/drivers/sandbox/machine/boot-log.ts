// The boot log of a machine: a file of the host that the machine can read but not write. What the machine prints
// goes through a process outside it, which keeps the last of it.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { open } from 'node:fs/promises';
import type { Writable } from 'node:stream';
import type { MachineSpec } from '#cloud/drivers/driver.ts';
import type { SandboxHost } from '#cloud/drivers/sandbox/host.ts';
import { leaveHostCommand, outerEnvironment } from './leave-host.ts';

/** The log has at least this much of the end, if there was as much. */
const keptBytes = 256 * 1024;
/** The log is cut after so many bytes more. */
const addedBytes = 768 * 1024;
/**
 * `dd` writes what it reads at once, unlike `head`, which would hold back the last lines. If it
 * adds nothing, the machine has ended. The log stays the same file, because the machine has it
 * mounted.
 */
const copy = `exec 3>&1
log=/proc/self/fd/3
length=-1
until dd bs=65536 count=${addedBytes} iflag=count_bytes status=none; [ "$(wc -c <$log)" = "$length" ]; do
  kept=$(tail -c ${keptBytes} <$log; echo .)
  : >$log
  printf %s "\${kept%.}"
  length=$(wc -c <$log)
done`;

export interface BootLog {
  /** Becomes the machine's standard error. The caller must destroy it once the machine has it. */
  readonly input: Writable;
  /** Resolves when all of a machine that ended is in the log. */
  readonly complete: Promise<unknown>;
}

/** Starts the copying process. It ends with the machine and survives this server. */
export async function openBootLog(
  host: SandboxHost,
  file: string,
  spec: MachineSpec,
): Promise<BootLog> {
  const log = await open(file, 'a');
  await log.chmod(0o644);
  const [program, argv] = leaveHostCommand(host, spec);
  const copier = spawn(program, [...argv, '/bin/sh', '-c', copy], {
    cwd: '/',
    detached: true,
    stdio: ['pipe', log.fd, 'ignore'],
    env: outerEnvironment,
  });
  await log.close();
  copier.stdin!.on('error', () => {});
  copier.unref();
  return { input: copier.stdin!, complete: once(copier, 'close').catch(() => {}) };
}

/** Returns the end of it. */
export async function readBootLog(path: string): Promise<string> {
  const file = await open(path).catch(() => null);
  if (!file) return '';
  try {
    const { size } = await file.stat();
    const length = Math.min(size, keptBytes);
    const { buffer } = await file.read(Buffer.alloc(length), 0, length, size - length);
    return buffer.toString('utf8');
  } finally {
    await file.close();
  }
}
