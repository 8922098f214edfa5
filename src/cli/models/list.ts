// millrace models list.

import { Command } from 'commander';
import { readBackends, toState } from '#cli/backends/list.ts';
import { createClient } from '#cli/client.ts';
import { loadCredentials } from '#cli/credentials.ts';
import { printJson, printTable } from '#cli/output.ts';
import type { BackendView } from '#inference/backends/schema.ts';
import type { Model } from '#inference/schema.ts';
import type { WeightsOverview } from '#inference/weights/schema.ts';
import { toSize } from '#lib/format.ts';

export function listCommand(): Command {
  return new Command('list')
    .description('List models, their backends, and the weights on disk')
    .option('--json', 'Print JSON')
    .addHelpText(
      'after',
      '\nBackends and weights are shown only if you are signed in. An API key lists the models alone.',
    )
    .action(list);
}

async function list({ json }: { json?: true }): Promise<void> {
  // An API key may list models, but backends and weights need a session.
  const isSignedIn = loadCredentials().session !== null;
  const overview = isSignedIn ? await readOverview() : null;
  const backends = isSignedIn ? await readBackends() : [];
  const { data: models } = await createClient('any').get<{ data: Model[] }>('/v1/models');
  if (json)
    return printJson(
      models.map((model) => ({ ...model, ...toDetail(overview, backends, model.id) })),
    );
  if (overview === null) {
    printTable(
      ['ID', 'OWNER'],
      models.map(({ id, owned_by }) => [id, owned_by]),
    );
    return;
  }
  printTable(
    ['ID', 'OWNER', 'SERVED BY'],
    models.map(({ id, owned_by }) => [id, owned_by, servedBy(backends, id)]),
  );
  if (overview.data.length > 0) {
    console.log('');
    printTable(
      ['WEIGHTS ON DISK', 'SIZE', 'STATE', 'SERVES'],
      overview.data.map(({ name, bytes, bytes_on_disk, state, models: served }) => [
        name,
        state === 'whole' ? toSize(bytes) : `${toSize(bytes_on_disk)} of ${toSize(bytes)}`,
        isBeingPulled(overview, name) ? 'being pulled' : state,
        served.length === 0 ? '-' : served.join(', '),
      ]),
    );
  }
}

export const readOverview = () =>
  createClient('session').get<WeightsOverview>('/dashboard/api/weights');

export function servedBy(backends: readonly BackendView[], id: string): string {
  const own = backends.filter(({ model }) => model === id);
  return own
    .map((backend) => {
      if (backend.kind === 'stand-in') return 'stand-in, not the real model';
      const state = toState(backend);
      return state === 'healthy' ? backend.name : `${backend.name} (${state})`;
    })
    .join(', ');
}

/** Empty without a session, which is not the same as null: a model without weights. */
function toDetail(
  overview: WeightsOverview | null,
  backends: readonly BackendView[],
  id: string,
): { weights?: string | null; backends?: BackendView[] } {
  if (overview === null) return {};
  return {
    weights: overview.models.find((one) => one.id === id)?.weights ?? null,
    backends: backends.filter(({ model }) => model === id),
  };
}

export const isBeingPulled = ({ pulls }: WeightsOverview, name: string) =>
  pulls.some((pull) => pull.name === name && (pull.state === 'queued' || pull.state === 'running'));
