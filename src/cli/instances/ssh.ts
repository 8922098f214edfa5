// millrace instances ssh: connects to an instance with the ssh program of this computer.

import { spawn } from 'node:child_process';
import { Command } from 'commander';
import { createClient } from '#cli/client.ts';
import { getItem } from '#cli/noun.ts';
import { CliError } from '#cli/output.ts';
import { findPrivateKeyFile } from '#cli/ssh-keys/private-key-file.ts';
import type { Instance } from '#cloud/schema.ts';
import { instances } from './find.ts';

export function sshCommand(): Command {
  return new Command('ssh')
    .description('Connect to an instance by SSH, or run a command in it')
    .argument(...instances.argument)
    .argument('[command...]', 'Command to run; put -- before one that has options')
    .option(
      '-i, --identity <file>',
      'Private key (default: ~/.ssh/<SSH key>.pem or ./<SSH key>.pem, if it exists)',
    )
    .action(async (wanted: string, command: string[], { identity }: { identity?: string }) => {
      const instance = await getItem(instances, createClient('any'), wanted);
      if (instance.ip === undefined || instance.status !== 'active') {
        throw new CliError(`Instance ${wanted} is ${instance.status}. Connect once it is active.`);
      }
      const key = identity ?? findPrivateKeyFile(instance.ssh_key_names);
      const code = await run(toArguments(instance, instance.ip, key, command));
      if (code !== 0) throw new CliError('', code);
    });
}

function toArguments(
  { id, ssh_port }: Instance,
  ip: string,
  identity: string | undefined,
  command: readonly string[],
): string[] {
  return [
    // Later instances reuse addresses, but never ids.
    ...['-o', `HostKeyAlias=millrace-${id}`, '-o', 'StrictHostKeyChecking=accept-new'],
    ...['-p', String(ssh_port ?? 22)],
    ...(identity === undefined ? [] : ['-i', identity]),
    `ubuntu@${ip}`,
    ...(command.length === 0 ? [] : ['--', ...command]),
  ];
}

function run(options: string[]): Promise<number> {
  return new Promise((done, fail) => {
    const child = spawn('ssh', options, { stdio: 'inherit' });
    child.once('error', () =>
      fail(
        new CliError(
          'The ssh program is not installed on this computer. Install OpenSSH and try again.',
        ),
      ),
    );
    child.once('exit', (code) => done(code ?? 255));
  });
}
