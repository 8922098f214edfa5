// millrace instances show.

import { Command } from 'commander';
import { createClient } from '#cli/client.ts';
import { addView } from '#cli/view.ts';
import { toHourlyPrice } from '#lib/text/format.ts';
import { toPrintable } from '#lib/text/printable.ts';
import { listInstances, pickInstance } from './find.ts';
import { explainInstances } from './reasons.ts';

export function showCommand(): Command {
  const command = new Command('show')
    .description('Show the state, addresses, type, keys and filesystems of an instance')
    .argument('<instance>', 'Id, its first characters, or name');
  return addView(command, async (wanted: string) => {
    const instance = pickInstance(await listInstances(createClient('any')), wanted);
    const { instance_type: type, region } = instance;
    const rows = [
      ['Id', instance.id],
      ['Name', instance.name],
      ['Status', instance.status],
      ['Address', instance.ip],
      ['SSH port', instance.ip && (instance.ssh_port ?? 22)],
      ['Private address', instance.private_ip],
      ['Type', `${type.name}: ${type.description}`],
      ['Price', toHourlyPrice(type.price_cents_per_hour)],
      ['Region', region.name],
      ['SSH keys', instance.ssh_key_names.join(', ')],
      ['Filesystems', instance.file_system_names.join(', ')],
      ['Tags', instance.tags?.map(({ key, value }) => `${key}=${value}`).join(', ')],
    ];
    return {
      data: instance,
      text: rows
        .map(([name, value]) => `${String(name).padEnd(16)} ${toPrintable(String(value || '-'))}`)
        .join('\n'),
      notes: () => explainInstances(instance.status === 'unhealthy' ? [instance.id] : []),
    };
  });
}
