// millrace backends list.

import { Command } from 'commander';
import { createClient } from '#cli/client.ts';
import { CliError, printJson, printTable, printText } from '#cli/output.ts';
import { listAll } from '#cli/pages.ts';
import type { BackendView } from '#inference/backends/schema.ts';

export function listCommand(): Command {
  return new Command('list')
    .description('List backends with their health, load and errors')
    .argument('[model]', 'Only the backends of this model')
    .option('--json', 'Print JSON')
    .action(list);
}

async function list(model: string | undefined, { json }: { json?: true }): Promise<void> {
  const all = await readBackends();
  const data = all.filter((backend) => model === undefined || backend.model === model);
  if (model !== undefined && data.length === 0) {
    throw new CliError(`No model ${model} has backends. See \`millrace backends list\`.`);
  }
  if (json) return printJson(data);
  printTable(
    ['MODEL', 'NAME', 'FROM', 'ADDRESS', 'STATE', 'RUNNING', 'REQ/S', 'FIRST TOKEN', 'ERRORS'],
    data.map((backend) => [
      backend.model,
      backend.name,
      backend.source,
      backend.url ?? '-',
      toState(backend),
      String(backend.outstanding),
      String(backend.requests_per_second),
      backend.first_token_ms === null ? '-' : `${Math.round(backend.first_token_ms)} ms`,
      String(backend.errors),
    ]),
  );
  for (const { id, reason, last_error } of data) {
    const why = reason ?? last_error;
    if (why !== null) printText(`\n${id}: ${why}`);
  }
  for (const { id, implausible_counts: count } of data) {
    const times = count === 1 ? 'once' : `${count} times`;
    if (count > 0)
      printText(
        `\n${id}: reported implausible token counts ${times} in 24 hours; counted here instead.`,
      );
  }
}

export const readBackends = () =>
  listAll<BackendView>(createClient('session'), '/dashboard/api/backends');

/** The dashboard uses the same words. */
const words = { healthy: 'healthy', probation: 'retrying', ejected: 'unavailable' } as const;

/** A backend that fails every request stays healthy for routing if the others fail them too. */
export function toState({ draining, health, requests, errors }: BackendView): string {
  const percent = Math.round((errors / Math.max(1, requests)) * 100);
  const state = health === 'healthy' && percent > 0 ? `failing ${percent}%` : words[health];
  return draining ? `draining, ${state}` : state;
}
