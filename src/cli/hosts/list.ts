// millrace hosts list.

import { Command } from 'commander';
import { createClient } from '#cli/client.ts';
import { printJson, printTable, toPrintable } from '#cli/output.ts';
import type { HostView } from '#cloud/hosts/schema.ts';

export function listCommand(): Command {
  return new Command('list')
    .description('List hosts with their used and total resources')
    .option('--json', 'Print JSON')
    .action(async ({ json }: { json?: true }) => {
      const { data } = await createClient('session').get<{ data: HostView[] }>(
        '/dashboard/api/hosts',
      );
      if (json) return printJson(data);
      printTable(
        ['NAME', 'REGION', 'STATUS', 'ENGINE', 'NODES', 'VCPUS', 'MEMORY', 'GPUS', 'INSTANCES'],
        data.map((host) => [
          host.name,
          host.region,
          host.status === 'offline' && host.draining ? 'offline, draining' : host.status,
          host.engine ?? host.driver,
          countOnline(host),
          `${sum(host, 'vcpus_used')}/${sum(host, 'vcpus')}`,
          `${sum(host, 'memory_gib_used')}/${sum(host, 'memory_gib')} GiB`,
          countGpus(host),
          String(host.instances),
        ]),
      );
      for (const { name, reason } of data) {
        if (reason !== null) console.error(toPrintable(`${name}: ${reason}`));
      }
    });
}

const sum = (
  { nodes }: HostView,
  member: 'vcpus' | 'vcpus_used' | 'memory_gib' | 'memory_gib_used',
) => nodes.reduce((total, node) => total + node[member], 0);

const countOnline = ({ nodes }: HostView) =>
  `${nodes.filter(({ online }) => online).length}/${nodes.length}`;

function countGpus({ nodes }: HostView): string {
  const gpus = nodes.flatMap((node) => node.gpus);
  return `${gpus.filter((gpu) => gpu.instance_id !== null || gpu.used_by_models).length}/${gpus.length}`;
}
