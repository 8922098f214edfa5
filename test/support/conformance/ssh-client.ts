// The stock OpenSSH client for tests: a key pair and known hosts in a temporary folder, and results as plain
// values.

import { execFile, type SpawnOptions, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

export interface CommandResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Address {
  readonly ip: string;
  readonly sshPort: number;
}

export function createSshClient() {
  const folder = mkdtempSync(path.join(tmpdir(), 'millrace-ssh-'));
  const keyFile = path.join(folder, 'key');
  spawnSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', keyFile]);

  function options({ sshPort }: Address): string[] {
    const settings = [
      'BatchMode=yes',
      'StrictHostKeyChecking=accept-new',
      'LogLevel=ERROR',
      'ConnectTimeout=60',
      'IdentitiesOnly=yes',
      `UserKnownHostsFile=${path.join(folder, 'known_hosts')}`,
      `Port=${sshPort}`,
    ];
    return ['-F', 'none', '-i', keyFile, ...settings.flatMap((setting) => ['-o', setting])];
  }

  return {
    folder,
    publicKey: readFileSync(`${keyFile}.pub`, 'utf8').trim(),
    options,
    ssh: (to: Address, ...args: string[]) => run('ssh', sshArguments(to, args)),
    sshWithInput: (to: Address, input: string, ...args: string[]) =>
      run('ssh', sshArguments(to, args), input),
    /** Starts a session that stays open. */
    spawnSsh: (to: Address, args: string[], spawnOptions: SpawnOptions = {}) =>
      spawn('ssh', sshArguments(to, args), spawnOptions),
    run,
    /** Drops the stored host keys, because later machines reuse addresses. */
    forgetHosts: () => rmSync(path.join(folder, 'known_hosts'), { force: true }),
    close: () => rmSync(folder, { recursive: true, force: true }),
  };

  /** The last argument is the command unless it starts with a hyphen; the others are flags. */
  function sshArguments(to: Address, args: string[]): string[] {
    const command = args.at(-1)?.startsWith('-') ? [] : args.slice(-1);
    const flags = args.slice(0, args.length - command.length);
    return [...options(to), ...flags, `ubuntu@${to.ip}`, ...command];
  }
}

export type SshClient = ReturnType<typeof createSshClient>;

export function run(
  program: string,
  args: readonly string[],
  input = '',
  timeoutMs = 60_000,
): Promise<CommandResult> {
  return new Promise((resolve) => {
    const limits = { timeout: timeoutMs, maxBuffer: 64 * 1024 * 1024 };
    const child = execFile(program, args, limits, (error, stdout, stderr) => {
      const code = error ? ((error as { code?: unknown }).code as number | null) : 0;
      resolve({ code: typeof code === 'number' ? code : null, stdout, stderr });
    });
    child.stdin?.on('error', () => {});
    child.stdin?.end(input);
  });
}
