// Runs a command inside a machine as `ubuntu`. Nothing that a client chose is in the environment of the
// programs that run outside: it is handed over as arguments of `env`, inside.

import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';
import type { SandboxHost } from '#cloud/drivers/sandbox/host.ts';
import { leaveHostCommand } from './boot.ts';
import type { MachineDirectory, MachineProcess, MachineRecord } from './machine-directory.ts';
import type { Namespaces } from './namespaces.ts';
import { findChild } from './process-identity.ts';

export interface RunningMachine {
  readonly host: SandboxHost;
  readonly directory: MachineDirectory;
  readonly record: MachineRecord;
  readonly process: MachineProcess;
  readonly namespaces: Namespaces;
}

export interface Command {
  readonly argv: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  /** In a session of its own, so that a signal reaches all it started. Not with a terminal. */
  readonly ownSession?: boolean;
}

const searchPath = '/run/machine/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
const startAtHome = 'umask 022; cd "$HOME" 2>/dev/null || cd /; exec "$@"';

/** Program and arguments to spawn on the host, with an empty environment. */
export function enterCommand(machine: RunningMachine, command: Command): [string, string[]] {
  const { host, directory, record } = machine;
  const home = host.mode === 'none' ? `${directory.disk}/home/ubuntu` : '/home/ubuntu';
  const environment: Record<string, string> = {
    HOME: home,
    USER: 'ubuntu',
    LOGNAME: 'ubuntu',
    SHELL: host.shell,
    PATH: host.mode === 'none' ? searchPath.slice(searchPath.indexOf(':') + 1) : searchPath,
    LANG: 'C.UTF-8',
    ...(record.spec.gpus.length > 0 && { CUDA_VISIBLE_DEVICES: record.spec.gpus.join(',') }),
    ...command.environment,
    ...(host.mode === 'none' && { MILLRACE_MACHINE: directory.id }),
  };
  const [program, argv] = leaveHostCommand(host, directory.id);
  return [
    program,
    [
      ...argv,
      ...machine.namespaces.entrance,
      // Outside of a process namespace the spawned program leads a session already.
      ...(command.ownSession && host.mode !== 'none' ? ['setsid'] : []),
      ...['env', '-i', ...Object.entries(environment).map(([name, value]) => `${name}=${value}`)],
      ...['/bin/sh', '-c', startAtHome, 'sh', ...command.argv],
    ],
  ];
}

export const outerEnvironment = {
  PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
};

export function spawnInside(machine: RunningMachine, command: Command, options: SpawnOptions = {}) {
  const [program, argv] = enterCommand(machine, { ownSession: true, ...command });
  // Detached, so that an interrupt at the server's own terminal does not reach it.
  return spawn(program, argv, { ...options, cwd: '/', env: outerEnvironment, detached: true });
}

/** Sends to all that the command started; `nsenter` itself waits outside and passes the status on. */
export async function signalInside(
  machine: RunningMachine,
  child: ChildProcess,
  signal: NodeJS.Signals,
) {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const leader = machine.host.mode === 'none' ? child.pid : await findChild(child.pid ?? 0);
  if (leader === undefined) return;
  try {
    process.kill(-leader, signal);
  } catch {
    // It is gone, or became somebody else's by a set-uid program: as with sshd, nothing happens.
  }
}
