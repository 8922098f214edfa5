// millrace filesystems delete.

import { Command } from 'commander';
import { createClient } from '#cli/client.ts';
import { CliError } from '#cli/output.ts';
import { withQuestions } from '#cli/questions.ts';
import type { Filesystem } from '#cloud/schema.ts';

export function deleteCommand(): Command {
  return new Command('delete')
    .description('delete a filesystem and all that is in it')
    .argument('<filesystem>', 'id or name')
    .option('--yes', "don't ask")
    .action(async (wanted: string, { yes }: { yes?: true }) => {
      const client = createClient('any');
      const { data } = await client.get<{ data: Filesystem[] }>('/api/v1/file-systems');
      const found = data.find(({ id, name }) => id === wanted || name === wanted);
      if (found === undefined) throw new CliError(`There is no filesystem ${wanted}.`);
      if (!yes && process.stdin.isTTY) {
        const answer = await withQuestions(({ ask }) =>
          ask(`Delete ${found.name} and all that is in it? [y/N] `),
        );
        if (!/^y(es)?$/i.test(answer)) throw new CliError('Nothing was deleted.');
      }
      await client.delete(`/api/v1/filesystems/${found.id}`);
      console.log(`Deleted ${found.name}.`);
    });
}
