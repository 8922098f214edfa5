// millrace hosts drain and resume.

import { Command } from 'commander';
import { createClient } from '#cli/client.ts';
import type { HostView } from '#cloud/hosts/schema.ts';

const setDraining = (name: string, draining: boolean) =>
  createClient('session').patch<HostView>(`/dashboard/api/hosts/${encodeURIComponent(name)}`, {
    draining,
  });

export function drainCommand(): Command {
  return new Command('drain')
    .description('place nothing new on a host; its machines run on')
    .argument('<name>')
    .action(async (name: string) => {
      const { instances } = await setDraining(name, true);
      console.log(`Draining ${name}: ${instances} machine${instances === 1 ? '' : 's'} left.`);
    });
}

export function resumeCommand(): Command {
  return new Command('resume')
    .description('place machines on a drained host again')
    .argument('<name>')
    .action(async (name: string) => {
      const { status } = await setDraining(name, false);
      console.log(`Resumed ${name}: it is ${status}.`);
    });
}
