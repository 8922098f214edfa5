// Runs commands inside a machine as `ubuntu` or root. Variables that a client chose never enter the environment of
// programs outside the machine: they are passed as arguments to `env` inside.

import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';
import type { SandboxHost } from '#cloud/drivers/sandbox/host.ts';
import { toPrefix } from '#cloud/drivers/sandbox/seccomp/confine.ts';
import { leaveHostCommand, outerEnvironment } from './leave-host.ts';
import type { MachineDirectory, MachineProcess, MachineRecord } from './machine-directory.ts';
import type { Namespaces } from './namespaces.ts';
import { findChild } from './process-identity.ts';

/** A machine whose process 1 runs and whose namespaces this process holds open. */
export interface RunningMachine {
  readonly host: SandboxHost;
  readonly directory: MachineDirectory;
  readonly record: MachineRecord;
  readonly process: MachineProcess;
  readonly namespaces: Namespaces;
}

/** Shell code that adds the tools of the host's CUDA toolkit, such as nvcc, to the search path if it has them. */
const findCuda = '[ ! -d /usr/local/cuda/bin ] || PATH=$PATH:/usr/local/cuda/bin';

export interface Command {
  readonly argv: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  /** Starts a new session, so that a signal reaches all descendants. Must be false with a terminal. */
  readonly ownSession?: boolean;
  /** Runs it as the user of process 1. Default: false. */
  readonly asRoot?: boolean;
}

const searchPath = '/run/machine/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
const startAtHome = `umask 022; ${findCuda}; cd "$HOME" 2>/dev/null || cd /; exec "$@"`;

/** Returns the program and arguments to spawn on the host with `outerEnvironment`. */
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
  const [program, argv] = leaveHostCommand(host, record.spec);
  return [
    program,
    [
      ...argv,
      // Before the namespaces are entered: inside, a tenant could replace the program.
      ...toPrefix(host.confine),
      ...(command.asRoot ? machine.namespaces.rootEntrance : machine.namespaces.entrance),
      // Without a process namespace the spawned program already leads a session.
      ...(command.ownSession && host.mode !== 'none' ? ['setsid'] : []),
      ...['env', '-i', ...Object.entries(environment).map(([name, value]) => `${name}=${value}`)],
      ...['/bin/sh', '-c', startAtHome, 'sh', ...command.argv],
    ],
  ];
}

export function spawnInside(machine: RunningMachine, command: Command, options: SpawnOptions = {}) {
  const [program, argv] = enterCommand(machine, { ownSession: true, ...command });
  // Detached, so that Ctrl-C at the server's terminal does not reach it.
  return spawn(program, argv, { ...options, cwd: '/', env: outerEnvironment, detached: true });
}

/** Signals the command and its descendants. `nsenter` waits outside and passes the exit status on. */
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
    // It is gone, or runs as another user after a set-uid program: ignored, as sshd does.
  }
}

const commandTimeoutMs = 30_000;

/**
 * Runs a command of this server to its end, as the user of process 1, and returns its exit code;
 * null if it was killed.
 */
export function runInside(
  machine: RunningMachine,
  argv: readonly string[],
): Promise<number | null> {
  return new Promise((resolve, reject) => {
    const child = spawnInside(machine, { argv, asRoot: true }, { stdio: 'ignore' });
    const kill = () => void signalInside(machine, child, 'SIGKILL');
    const timer = setTimeout(kill, commandTimeoutMs);
    child.once('error', reject);
    child.once('exit', (code) => {
      clearTimeout(timer);
      resolve(code);
    });
  });
}
