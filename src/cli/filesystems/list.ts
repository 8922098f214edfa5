// millrace filesystems list.

import { Command } from 'commander';
import { createClient } from '#cli/client.ts';
import { toTable } from '#cli/output.ts';
import { addView } from '#cli/view.ts';
import { listFilesystems } from './find.ts';

export const listCommand = (): Command =>
  addView(new Command('list').description('List filesystems'), async () => {
    const data = await listFilesystems(createClient('any'));
    const rows = data.map(({ id, name, region, mount_point, bytes_used, is_in_use }) => [
      id,
      name,
      region.name,
      mount_point,
      bytes_used === undefined ? '-' : String(bytes_used),
      is_in_use ? 'yes' : 'no',
    ]);
    const headers = ['ID', 'NAME', 'REGION', 'MOUNT POINT', 'BYTES', 'IN USE'];
    return { data, text: toTable('filesystems', headers, rows) };
  });
