// millrace models list.

import { Command } from 'commander';
import type { Model } from '../../inference/schema.ts';
import { createClient } from '../client.ts';
import { printJson, printTable } from '../output.ts';

export function listCommand(): Command {
  return new Command('list')
    .description('list model ids')
    .option('--json', 'print JSON')
    .action(async ({ json }: { json?: true }) => {
      const { data } = await createClient('any').get<{ data: Model[] }>('/v1/models');
      if (json) return printJson(data);
      printTable(
        ['ID', 'OWNER'],
        data.map(({ id, owned_by }) => [id, owned_by]),
      );
    });
}
