// millrace instances list.

import { Command } from 'commander';
import { createClient } from '#cli/client.ts';
import { toTable } from '#cli/output.ts';
import { addView } from '#cli/view.ts';
import { toHourlyPrice } from '#lib/text/format.ts';
import { listInstances } from './find.ts';
import { explainInstances } from './reasons.ts';

export const listCommand = (): Command =>
  addView(new Command('list').description('List instances'), async () => {
    const data = await listInstances(createClient('any'));
    const rows = data.map(({ id, name, status, ip, private_ip, ssh_port, ...instance }) => [
      id,
      name ?? '-',
      status,
      ip === undefined ? '-' : ssh_port === undefined ? ip : `${ip}:${ssh_port}`,
      // Without a network, the private address is the public one.
      private_ip === ip ? '-' : (private_ip ?? '-'),
      instance.instance_type.name,
      instance.region.name,
      toHourlyPrice(instance.instance_type.price_cents_per_hour),
    ]);
    const unhealthy = data.filter(({ status }) => status === 'unhealthy').map(({ id }) => id);
    return {
      data,
      text: toTable(
        'instances',
        ['ID', 'NAME', 'STATUS', 'IP', 'PRIVATE IP', 'TYPE', 'REGION', 'PRICE'],
        rows,
        ['PRIVATE IP', 'REGION', 'TYPE'],
      ),
      notes: () => explainInstances(unhealthy),
    };
  });
