// millrace images list.

import { Command } from 'commander';
import { createClient } from '#cli/client.ts';
import { toTable } from '#cli/output.ts';
import { addView } from '#cli/view.ts';
import type { HostImage } from '#cloud/hosts/schema.ts';

export const listCommand = (): Command =>
  addView(new Command('list').description('List the images of every host'), async () => {
    const { data } = await createClient('session').get<{ data: HostImage[] }>(
      '/dashboard/api/images',
    );
    const rows = data.map(({ name, host, region, architecture, description }) => [
      name,
      host,
      region,
      architecture,
      description,
    ]);
    return {
      data,
      text: toTable('images', ['NAME', 'HOST', 'REGION', 'ARCHITECTURE', 'DESCRIPTION'], rows),
    };
  });
