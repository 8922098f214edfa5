// millrace backends add: adds a backend to a model without a restart.

import { Command } from 'commander';
import { createClient } from '#cli/client.ts';
import { CliError, printJson } from '#cli/output.ts';
import type { BackendCheck, BackendView } from '#inference/backends/schema.ts';
import { type BackendOptions, toNewBackend, withBackendOptions } from './new-backend.ts';

export function addCommand(): Command {
  return withBackendOptions(new Command('add'))
    .description('Check a backend and add it to a model; it receives requests at once')
    .option('--force', 'Add it without a check, e.g. because it is not running yet')
    .option('--json', 'Print JSON')
    .addHelpText(
      'after',
      '\nExamples:\n' +
        '  millrace backends add llama3.1-8b-instruct http://10.0.0.5:8000/v1 --server vllm \\\n' +
        '    --model meta-llama/Llama-3.1-8B-Instruct\n' +
        '  millrace backends add hermes3-8b https://api.example.com/v1 --api-key-file key.txt',
    )
    .action(add);
}

type AddOptions = BackendOptions & { force?: true; json?: true };

async function add(model: string, url: string, options: AddOptions) {
  const client = createClient('session');
  const backend = toNewBackend(model, url, options);
  if (!options.force) {
    const check = await client.post<BackendCheck>('/dashboard/api/backends/check', backend);
    if (!check.ok) {
      const others = check.models.length === 0 ? '' : ' Name one of them with --model.';
      throw new CliError(
        `${check.message}${others} Nothing was added. To add it anyway, use --force.`,
      );
    }
  }
  const made = await client.post<BackendView>('/dashboard/api/backends', backend);
  if (options.json) return printJson(made);
  console.log(`Added ${made.id}. It now receives requests for ${model}.`);
}
