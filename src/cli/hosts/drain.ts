// millrace hosts drain and resume.

import { Command } from 'commander';
import { createClient } from '#cli/client.ts';
import { printText } from '#cli/output.ts';
import type { HostView } from '#cloud/hosts/schema.ts';

const setDraining = (name: string, draining: boolean) =>
  createClient('session').patch<HostView>(`/dashboard/api/hosts/${encodeURIComponent(name)}`, {
    draining,
  });

export function drainCommand(): Command {
  return new Command('drain')
    .description('Place no new instances on a host; running ones continue')
    .argument('<name>', 'Name, from `millrace hosts list`')
    .action(async (name: string) => {
      const { instances } = await setDraining(name, true);
      printText(`Draining host ${name}. Instances still on it: ${instances}.`);
    });
}

export function resumeCommand(): Command {
  return new Command('resume')
    .description('Place instances on a drained host again')
    .argument('<name>', 'Name, from `millrace hosts list`')
    .action(async (name: string) => {
      const { status } = await setDraining(name, false);
      printText(`Resumed host ${name}. Its status is ${status}.`);
    });
}
