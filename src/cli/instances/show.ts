// millrace instances show.

import { Command } from 'commander';
import { createClient } from '#cli/client.ts';
import { printJson, toPrintable } from '#cli/output.ts';
import { toHourlyPrice } from '#lib/format.ts';
import { listInstances, pickInstance } from './find.ts';
import { explainInstances } from './reasons.ts';

export function showCommand(): Command {
  return new Command('show')
    .description('Show the state, addresses, type, keys and filesystems of an instance')
    .argument('<instance>', 'Id or name')
    .option('--json', 'Print JSON')
    .action(async (wanted: string, { json }: { json?: true }) => {
      const instance = pickInstance(await listInstances(createClient('any')), wanted);
      if (json) return printJson(instance);
      const { instance_type: type, region } = instance;
      const rows = [
        ['Id', instance.id],
        ['Name', instance.name],
        ['Status', instance.status],
        ['Address', instance.ip],
        ['SSH port', instance.ssh_port],
        ['Private address', instance.private_ip],
        ['Type', `${type.name}: ${type.description}`],
        ['Price', toHourlyPrice(type.price_cents_per_hour)],
        ['Region', region.name],
        ['SSH keys', instance.ssh_key_names.join(', ')],
        ['Filesystems', instance.file_system_names.join(', ')],
        ['Tags', instance.tags?.map(({ key, value }) => `${key}=${value}`).join(', ')],
      ];
      for (const [name, value] of rows)
        console.log(`${String(name).padEnd(16)} ${toPrintable(String(value || '-'))}`);
      if (instance.status === 'unhealthy')
        for (const line of await explainInstances([instance.id])) console.error(line);
    });
}
