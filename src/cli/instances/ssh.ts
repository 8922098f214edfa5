// millrace instances ssh: enters a machine with the system's ssh.

import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { Command } from 'commander';
import { createClient } from '#cli/client.ts';
import { CliError } from '#cli/output.ts';
import { toPemName } from '#cli/ssh-keys/pem-name.ts';
import type { Instance } from '#cloud/schema.ts';
import { listInstances, pickInstance } from './find.ts';

export function sshCommand(): Command {
  return new Command('ssh')
    .description('enter a machine, or run a command in it')
    .argument('<instance>', 'id or name')
    .argument('[command...]', 'put -- before it when it has options')
    .option(
      '-i, --identity <file>',
      'the private key to use; <SSH key>.pem if it is in this folder',
    )
    .action(async (wanted: string, command: string[], { identity }: { identity?: string }) => {
      const instance = pickInstance(await listInstances(createClient('any')), wanted);
      if (instance.ip === undefined || instance.status !== 'active') {
        throw new CliError(`${wanted} is ${instance.status}; it can be entered once it is active.`);
      }
      const key = identity ?? findIdentity(instance);
      const code = await run(toArguments(instance, instance.ip, key, command));
      if (code !== 0) throw new CliError('', code);
    });
}

/** As `ssh-keys generate` saves it. */
const findIdentity = ({ ssh_key_names }: Instance) =>
  ssh_key_names.map(toPemName).find((file) => existsSync(file));

function toArguments(
  { id, ssh_port }: Instance,
  ip: string,
  identity: string | undefined,
  command: readonly string[],
): string[] {
  return [
    // Addresses are used again by later machines, ids never are.
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
    child.once('error', () => fail(new CliError('ssh is not installed on this computer.')));
    child.once('exit', (code) => done(code ?? 255));
  });
}
