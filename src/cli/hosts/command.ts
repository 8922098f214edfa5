// millrace hosts: the hosts that instances run on.

import type { Command } from 'commander';
import { changeCommand, listCommand, nounCommand } from '#cli/noun.ts';
import type { HostView } from '#cloud/hosts/schema.ts';
import { addCommand } from './add.ts';
import { checkCommand } from './check.ts';
import { hosts, toHostPath } from './find.ts';

export const hostsCommand = (): Command =>
  nounCommand('hosts', 'List, add, check, drain and remove the hosts that instances run on', [
    listCommand(hosts, {
      description: 'List hosts with their used and total resources',
      columns: {
        NAME: ({ name }) => name,
        REGION: ({ region }) => region,
        STATUS: ({ status, draining }) =>
          status === 'offline' && draining ? 'offline, draining' : status,
        ENGINE: ({ engine, driver }) => engine ?? driver,
        NODES: ({ nodes }) => `${nodes.filter(({ online }) => online).length}/${nodes.length}`,
        VCPUS: (host) => `${sum(host, 'vcpus_used')}/${sum(host, 'vcpus')}`,
        MEMORY: (host) => `${sum(host, 'memory_gib_used')}/${sum(host, 'memory_gib')} GiB`,
        GPUS: countGpus,
        INSTANCES: ({ instances }) => String(instances),
      },
      notes: (all) =>
        all.flatMap(({ name, reason }) => (reason === null ? [] : [`${name}: ${reason}`])),
    }),
    addCommand(),
    checkCommand(),
    changeCommand(hosts, 'drain', {
      description: 'Place no new instances on a host; running ones continue',
      async run(client, host) {
        const data = await client.patch<HostView>(toHostPath(host), { draining: true });
        const text = `Draining host ${data.name}. Instances still on it: ${data.instances}.`;
        return { data, text };
      },
    }),
    changeCommand(hosts, 'resume', {
      description: 'Place instances on a drained host again',
      async run(client, host) {
        const data = await client.patch<HostView>(toHostPath(host), { draining: false });
        return { data, text: `Resumed host ${data.name}. Its status is ${data.status}.` };
      },
    }),
    changeCommand(hosts, 'remove', {
      description: 'Remove a host that has no instances and no filesystems',
      extend: (command) =>
        command.option(
          '--forget-machines',
          'For a host that will never come back: mark its instances as terminated and its filesystems as lost',
        ),
      question: ({ name }, { forgetMachines }: { forgetMachines?: true }) =>
        forgetMachines
          ? `Remove host ${name}? Its instances count as terminated and its filesystems as lost.`
          : `Remove host ${name}?`,
      async run(client, host, { forgetMachines }: { forgetMachines?: true }) {
        await client.delete(`${toHostPath(host)}${forgetMachines ? '?forget=true' : ''}`);
        const { id, name } = host;
        return { data: { id, name }, text: `Removed host ${name}.` };
      },
    }),
  ]);

const sum = (
  { nodes }: HostView,
  member: 'vcpus' | 'vcpus_used' | 'memory_gib' | 'memory_gib_used',
) => nodes.reduce((total, node) => total + node[member], 0);

function countGpus({ nodes }: HostView): string {
  const gpus = nodes.flatMap((node) => node.gpus);
  return `${gpus.filter((gpu) => gpu.instance_id !== null || gpu.used_by_models).length}/${gpus.length}`;
}
