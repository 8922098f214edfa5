// millrace backends check: tests a backend from the Millrace server, without adding it.

import { Command } from 'commander';
import { createClient } from '#cli/client.ts';
import { CliError, printJson, printText } from '#cli/output.ts';
import type { BackendCheck } from '#inference/backends/schema.ts';
import { type BackendOptions, toNewBackend, withBackendOptions } from './new-backend.ts';

export function checkCommand(): Command {
  return withBackendOptions(new Command('check'))
    .description('Test a backend before adding it: whether it responds and has the model')
    .option('--json', 'Print JSON')
    .action(check);
}

async function check(model: string, url: string, options: BackendOptions & { json?: true }) {
  const result = await createClient('session').post<BackendCheck>(
    '/dashboard/api/backends/check',
    toNewBackend(model, url, options),
  );
  if (options.json) printJson(result);
  else if (result.ok) printText(`${result.message} (${result.latency_ms} ms)`);
  if (!result.ok) throw new CliError(options.json ? '' : result.message);
}
