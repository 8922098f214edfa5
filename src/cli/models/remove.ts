// millrace models remove.

import { Command } from 'commander';
import { createClient } from '#cli/client.ts';
import { CliError } from '#cli/output.ts';
import { readOverview } from './list.ts';
import { toSize } from './progress.ts';

export function removeCommand(): Command {
  return new Command('remove')
    .description('remove weights from the disk; models they served fall back to the stand-in')
    .argument('<name or id>', 'weights from `millrace models list`, or the model id they serve')
    .addHelpText(
      'after',
      '\nExamples:\n  millrace models remove llama3.1-8b-instruct\n' +
        '  millrace models remove owner--repository/file-Q4_K_M.gguf',
    )
    .action(remove);
}

async function remove(wanted: string): Promise<void> {
  const { data } = await readOverview();
  const weights = data.find(({ name, models }) => name === wanted || models.includes(wanted));
  if (weights === undefined) {
    throw new CliError(`No weights on disk are called ${wanted} or serve it.`);
  }
  const path = weights.name.split('/').map(encodeURIComponent).join('/');
  await createClient('session').delete(`/dashboard/api/weights/${path}`);
  console.log(`Removed ${weights.name}: ${toSize(weights.bytes_on_disk)} are free again.`);
  if (weights.models.length > 0) {
    console.log(`Served by the built-in stand-in from now on: ${weights.models.join(', ')}.`);
  }
}
