// millrace hosts list.

import { Command } from 'commander';
import { createClient } from '#cli/client.ts';
import { toTable } from '#cli/output.ts';
import { addView } from '#cli/view.ts';
import type { HostView } from '#cloud/hosts/schema.ts';
import { listHosts } from './find.ts';

export const listCommand = (): Command =>
  addView(
    new Command('list').description('List hosts with their used and total resources'),
    async () => {
      const data = await listHosts(createClient('session'));
      const rows = data.map((host) => [
        host.name,
        host.region,
        host.status === 'offline' && host.draining ? 'offline, draining' : host.status,
        host.engine ?? host.driver,
        countOnline(host),
        `${sum(host, 'vcpus_used')}/${sum(host, 'vcpus')}`,
        `${sum(host, 'memory_gib_used')}/${sum(host, 'memory_gib')} GiB`,
        countGpus(host),
        String(host.instances),
      ]);
      return {
        data,
        text: toTable('hosts', headers, rows),
        notes: () =>
          data.flatMap(({ name, reason }) => (reason === null ? [] : [`${name}: ${reason}`])),
      };
    },
  );

const headers = [
  'NAME',
  'REGION',
  'STATUS',
  'ENGINE',
  'NODES',
  'VCPUS',
  'MEMORY',
  'GPUS',
  'INSTANCES',
];

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
