// millrace backends add: adds a backend to a model without a restart.

import { Command } from 'commander';
import { createClient } from '#cli/client.ts';
import { printJson } from '#cli/output.ts';
import type { BackendView } from '#inference/backends/schema.ts';
import { type BackendOptions, toNewBackend, withBackendOptions } from './new-backend.ts';

export function addCommand(): Command {
  return withBackendOptions(new Command('add'))
    .description('Add a backend to a model; it receives requests at once')
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

async function add(model: string, url: string, options: BackendOptions & { json?: true }) {
  const made = await createClient('session').post<BackendView>(
    '/dashboard/api/backends',
    toNewBackend(model, url, options),
  );
  if (options.json) return printJson(made);
  console.log(`Added ${made.id}. It now receives requests for ${model}.`);
}
