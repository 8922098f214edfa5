// millrace models remove.

import { Command } from 'commander';
import { readBackends } from '#cli/backends/find.ts';
import { createClient } from '#cli/client.ts';
import { CliError, report } from '#cli/output.ts';
import { confirm } from '#cli/prompts.ts';
import { programName } from '#config/environment.ts';
import { toSize } from '#lib/text/format.ts';
import { readOverview } from './list.ts';

const examples = `
Examples:
  millrace models remove llama3.1-8b-instruct
  millrace models remove owner--repository/file-Q4_K_M.gguf`;

export function removeCommand(): Command {
  return new Command('remove')
    .description("Delete weights from the server's disk; requests for their models then get 503")
    .argument('<name or id>', 'Weights from `millrace models list`, or the model id they serve')
    .option('--yes', 'Do not ask for confirmation')
    .option('--json', 'Print JSON')
    .addHelpText('after', examples)
    .action(remove);
}

async function remove(wanted: string, { yes, json }: { yes?: true; json?: true }): Promise<void> {
  const { data } = await readOverview();
  const weights = data.find(({ name, models }) => name === wanted || models.includes(wanted));
  if (weights === undefined) {
    throw new CliError(
      `No weights on disk are called ${wanted} or serve it. See \`millrace models list\`.`,
    );
  }
  const size = toSize(weights.bytes_on_disk);
  await confirm(`Delete ${weights.name} (${size}) from the server's disk?`, yes);
  const path = weights.name.split('/').map(encodeURIComponent).join('/');
  await createClient('session').delete(`/dashboard/api/weights/${path}`);
  const removed = `Removed ${weights.name} and freed ${size}.`;
  const backends = await readBackends();
  const left = weights.models.filter((id) => !backends.some(({ model }) => model === id));
  const hints = left.map(
    (id) =>
      `\nNo backend serves ${id} now. To let the stand-in answer: ${programName()} models stand-in ${id}`,
  );
  report(weights, [removed, ...hints].join(''), json);
}
