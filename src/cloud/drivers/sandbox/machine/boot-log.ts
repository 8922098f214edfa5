// The boot log of a machine: a file of the host that the machine can read but not write. What the machine prints
// goes through a process outside it, which copies a bounded number of bytes and drops the rest.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { open, stat } from 'node:fs/promises';
import type { Writable } from 'node:stream';
import type { MachineSpec } from '#cloud/drivers/driver.ts';
import type { SandboxHost } from '#cloud/drivers/sandbox/host.ts';
import { leaveHostCommand, outerEnvironment } from './leave-host.ts';

/** Maximum bytes that one boot adds. The log is emptied before a boot if it is longer than this. */
const maxBytes = 1024 * 1024;
const maxReadBytes = 256 * 1024;
/** `dd` writes what it reads at once, unlike `head`, which would hold back the last lines. */
const copy = `dd bs=65536 count=${maxBytes} iflag=count_bytes status=none; exec cat >/dev/null`;

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
  const length = await stat(file).then(
    ({ size }) => size,
    () => 0,
  );
  const log = await open(file, length > maxBytes ? 'w' : 'a');
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

/** Returns at most the last 256 KiB. */
export async function readBootLog(path: string): Promise<string> {
  const file = await open(path).catch(() => null);
  if (!file) return '';
  try {
    const { size } = await file.stat();
    const length = Math.min(size, maxReadBytes);
    const { buffer } = await file.read(Buffer.alloc(length), 0, length, size - length);
    return buffer.toString('utf8');
  } finally {
    await file.close();
  }
}
