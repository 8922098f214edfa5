// millrace instances: from launch to termination.

import type { Command } from 'commander';
import { changeCommand, listCommand, nounCommand, viewCommand } from '#cli/noun.ts';
import { toFacts } from '#cli/output.ts';
import type { Instance } from '#cloud/schema.ts';
import { toHourlyPrice } from '#lib/text/format.ts';
import { instances } from './find.ts';
import { launchCommand } from './launch.ts';
import { logsCommand } from './logs.ts';
import { restartCommand, terminateCommand } from './operations.ts';
import { explainInstances } from './reasons.ts';
import { sshCommand } from './ssh.ts';
import { typesCommand } from './types.ts';

export const instancesCommand = (): Command =>
  nounCommand(
    'instances',
    'Launch, list, show, rename, restart and terminate instances, and connect to them by SSH',
    [
      typesCommand(),
      launchCommand(),
      listCommand(instances, {
        description: 'List instances',
        columns: {
          ID: ({ id }) => id,
          NAME: ({ name }) => name ?? '-',
          STATUS: ({ status }) => status,
          IP: ({ ip, ssh_port: port }) =>
            ip === undefined ? '-' : port === undefined ? ip : `${ip}:${port}`,
          // Without a network, the private address is the public one.
          'PRIVATE IP': ({ ip, private_ip }) => (private_ip === ip ? '-' : (private_ip ?? '-')),
          TYPE: ({ instance_type: type }) => type.name,
          REGION: ({ region }) => region.name,
          PRICE: ({ instance_type: type }) => toHourlyPrice(type.price_cents_per_hour),
        },
        spare: ['PRIVATE IP', 'REGION', 'TYPE'],
        notes: explain,
      }),
      viewCommand(
        instances,
        'show',
        'Show the state, addresses, type, keys and filesystems of an instance',
        (instance) => ({
          data: instance,
          text: describe(instance),
          notes: () => explain([instance]),
        }),
      ),
      changeCommand(instances, 'rename', {
        description: 'Change the name of an instance',
        extend: (command) => command.argument('<name>', 'New name'),
        async run(client, { id }, name: string) {
          const { data } = await client.post<{ data: Instance }>(`/api/v1/instances/${id}`, {
            name,
          });
          return { data, text: `Renamed ${id} to ${name}.` };
        },
      }),
      logsCommand(),
      sshCommand(),
      restartCommand(),
      terminateCommand(),
    ],
  );

const explain = (all: readonly Instance[]) =>
  explainInstances(all.filter(({ status }) => status === 'unhealthy').map(({ id }) => id));

function describe(instance: Instance): string {
  const { instance_type: type, region, ip } = instance;
  return toFacts([
    ['Id', instance.id],
    ['Name', instance.name],
    ['Status', instance.status],
    ['Address', ip],
    ['SSH port', ip && String(instance.ssh_port ?? 22)],
    ['Private address', instance.private_ip],
    ['Type', `${type.name}: ${type.description}`],
    ['Price', toHourlyPrice(type.price_cents_per_hour)],
    ['Region', region.name],
    ['SSH keys', instance.ssh_key_names.join(', ')],
    ['Filesystems', instance.file_system_names.join(', ')],
    ['Tags', instance.tags?.map(({ key, value }) => `${key}=${value}`).join(', ')],
  ]);
}
