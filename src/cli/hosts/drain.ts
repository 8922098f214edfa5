// millrace hosts drain and resume.

import { Command } from 'commander';
import { createClient } from '#cli/client.ts';
import { report } from '#cli/output.ts';
import type { HostView } from '#cloud/hosts/schema.ts';
import { getHost, hostArgument, toHostPath } from './find.ts';

async function setDraining(wanted: string, draining: boolean): Promise<HostView> {
  const client = createClient('session');
  return client.patch<HostView>(toHostPath(await getHost(client, wanted)), { draining });
}

export function drainCommand(): Command {
  return new Command('drain')
    .description('Place no new instances on a host; running ones continue')
    .argument(...hostArgument)
    .option('--json', 'Print JSON')
    .action(async (wanted: string, { json }: { json?: true }) => {
      const host = await setDraining(wanted, true);
      report(host, `Draining host ${host.name}. Instances still on it: ${host.instances}.`, json);
    });
}

export function resumeCommand(): Command {
  return new Command('resume')
    .description('Place instances on a drained host again')
    .argument(...hostArgument)
    .option('--json', 'Print JSON')
    .action(async (wanted: string, { json }: { json?: true }) => {
      const host = await setDraining(wanted, false);
      report(host, `Resumed host ${host.name}. Its status is ${host.status}.`, json);
    });
}
