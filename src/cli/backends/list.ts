// millrace backends list.

import { Command } from 'commander';
import { createClient } from '#cli/client.ts';
import { CliError, toTable } from '#cli/output.ts';
import { listAll } from '#cli/pages.ts';
import { addView } from '#cli/view.ts';
import type { BackendView } from '#inference/backends/schema.ts';

export function listCommand(): Command {
  const command = new Command('list')
    .description('List backends with their health, load and errors')
    .argument('[model]', 'Only the backends of this model');
  return addView(command, async (model: string | undefined) => {
    const all = await readBackends();
    const data = all.filter((backend) => model === undefined || backend.model === model);
    if (model !== undefined && data.length === 0) {
      throw new CliError(`No model ${model} has backends. See \`millrace backends list\`.`);
    }
    return { data, text: [renderBackends(data), ...data.flatMap(explain)].join('\n') };
  });
}

const renderBackends = (backends: readonly BackendView[]) =>
  toTable(
    'backends',
    ['MODEL', 'NAME', 'FROM', 'ADDRESS', 'STATE', 'RUNNING', 'REQ/S', 'FIRST TOKEN', 'ERRORS'],
    backends.map((backend) => [
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
    ['FROM', 'FIRST TOKEN', 'REQ/S', 'ADDRESS', 'RUNNING'],
  );

function explain({ id, reason, last_error, implausible_counts: count }: BackendView): string[] {
  const why = reason ?? last_error;
  const times = count === 1 ? 'once' : `${count} times`;
  return [
    ...(why === null ? [] : [`\n${id}: ${why}`]),
    ...(count === 0
      ? []
      : [`\n${id}: reported implausible token counts ${times} in 24 hours; counted here instead.`]),
  ];
}

export const readBackends = () =>
  listAll<BackendView>(createClient('session'), '/dashboard/api/backends');

/** The dashboard uses the same words. */
const words = { healthy: 'healthy', probation: 'retrying', ejected: 'unavailable' } as const;

const toHealthy = (failedPercent: number, reason: string | null) =>
  failedPercent > 0
    ? `failing ${failedPercent}%`
    : reason === null
      ? words.healthy
      : 'last check failed';

/** A backend that fails every request stays healthy for routing if the others fail them too. */
export function toState(backend: BackendView): string {
  const { kind, source, url, draining, health, reason, requests, errors } = backend;
  if (kind === 'stand-in') return 'stand-in';
  // It stands for a deployment.
  if (source === 'deployment' && url === null) return draining ? 'unavailable' : 'no replica ready';
  const percent = Math.round((errors / Math.max(1, requests)) * 100);
  const state = health === 'healthy' ? toHealthy(percent, reason) : words[health];
  return draining ? `draining, ${state}` : state;
}
