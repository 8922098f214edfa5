// millrace models list.

import { Command } from 'commander';
import type { Model } from '../../inference/schema.ts';
import type { WeightsOverview } from '../../inference/weights/schema.ts';
import { createClient } from '../client.ts';
import { loadCredentials } from '../credentials.ts';
import { printJson, printTable } from '../output.ts';
import { toSize } from './progress.ts';

export function listCommand(): Command {
  return new Command('list')
    .description('list model ids, what serves each, and the weights on disk')
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      '\nWhat serves an id, and what is on disk, is shown to those who are signed in.',
    )
    .action(list);
}

async function list({ json }: { json?: true }): Promise<void> {
  // An API key may list models, but only people see what is on the server's disk.
  const overview = loadCredentials().session === null ? null : await readOverview();
  const { data: models } = await createClient('any').get<{ data: Model[] }>('/v1/models');
  if (json)
    return printJson(models.map((model) => ({ ...model, ...toDetail(overview, model.id) })));
  if (overview === null) {
    printTable(
      ['ID', 'OWNER'],
      models.map(({ id, owned_by }) => [id, owned_by]),
    );
    return;
  }
  printTable(
    ['ID', 'OWNER', 'SERVED BY'],
    models.map(({ id, owned_by }) => [id, owned_by, servedBy(overview, id)]),
  );
  if (overview.data.length > 0) {
    console.log('');
    printTable(
      ['WEIGHTS ON DISK', 'SIZE', 'STATE', 'SERVES'],
      overview.data.map(({ name, bytes, bytes_on_disk, state, models: served }) => [
        name,
        state === 'whole' ? toSize(bytes) : `${toSize(bytes_on_disk)} of ${toSize(bytes)}`,
        isPulled(overview, name) ? 'being pulled' : state,
        served.length === 0 ? '-' : served.join(', '),
      ]),
    );
  }
}

export const readOverview = () =>
  createClient('session').get<WeightsOverview>('/dashboard/api/weights');

export function servedBy({ models }: WeightsOverview, id: string): string {
  return models.find((one) => one.id === id)?.weights ?? 'built-in stand-in';
}

/** Nothing, for those who may not see it, which is not the same as null. */
function toDetail(overview: WeightsOverview | null, id: string): { weights?: string | null } {
  if (overview === null) return {};
  return { weights: overview.models.find((one) => one.id === id)?.weights ?? null };
}

export const isPulled = ({ pulls }: WeightsOverview, name: string) =>
  pulls.some((pull) => pull.name === name && (pull.state === 'queued' || pull.state === 'running'));
