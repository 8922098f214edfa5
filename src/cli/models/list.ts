// millrace models list.

import { Command } from 'commander';
import { readBackends, toState } from '#cli/backends/find.ts';
import { createClient } from '#cli/client.ts';
import { loadCredentials } from '#cli/credentials.ts';
import { type Columns, toTable } from '#cli/output.ts';
import { addView, type View } from '#cli/view.ts';
import type { BackendView } from '#inference/backends/schema.ts';
import type { Model } from '#inference/schema.ts';
import type { WeightsOverview } from '#inference/weights/schema.ts';
import { toSize } from '#lib/text/format.ts';

export function listCommand(): Command {
  const command = new Command('list')
    .description('List models, their backends, and the weights on disk')
    .addHelpText(
      'after',
      '\nBackends and weights are shown only if you are signed in. An API key lists the models alone.',
    );
  return addView(command, list);
}

async function list(): Promise<View> {
  // An API key may list models, but backends and weights need a session.
  const isSignedIn = loadCredentials().session !== null;
  const overview = isSignedIn ? await readOverview() : null;
  const backends = isSignedIn ? await readBackends() : [];
  const models = await readModels(overview);
  const data = models.map((model) => ({ ...model, ...toDetail(overview, backends, model.id) }));
  const named: Columns<Model> = { ID: ({ id }) => id, OWNER: ({ owned_by }) => owned_by };
  if (overview === null) return { data, text: toTable('models', models, named) };
  const aliasesOf = ({ id }: Model) =>
    overview.models.find((one) => one.id === id)?.aliases.join(', ') ?? '';
  const columns: Columns<Model> = {
    ...named,
    'SERVED BY': ({ id }) => servedBy(backends, id),
    ...(models.some((model) => aliasesOf(model) !== '') && { ALIASES: aliasesOf }),
  };
  const unlisted = findUnlisted(overview);
  const parts = [
    toTable('models', models, columns),
    ...(unlisted.length > 0
      ? [`Not listed by GET /v1/models, but served by id: ${unlisted.join(', ')}.`]
      : []),
    ...(overview.data.length > 0 ? [renderWeights(overview)] : []),
  ];
  return { data, text: parts.join('\n\n') };
}

/** Those of `/v1/models`, and those that only an overview shows. */
async function readModels(overview: WeightsOverview | null): Promise<Model[]> {
  const client = createClient('any');
  const { data } = await client.get<{ data: Model[] }>('/v1/models');
  const others = findUnlisted(overview).map((id) =>
    client.get<Model>(`/v1/models/${encodeURIComponent(id)}`),
  );
  return [...data, ...(await Promise.all(others))];
}

const findUnlisted = (overview: WeightsOverview | null) =>
  overview?.models.filter(({ listed }) => listed === false).map(({ id }) => id) ?? [];

const renderWeights = (overview: WeightsOverview) =>
  toTable('weights', overview.data, {
    'WEIGHTS ON DISK': ({ name }) => name,
    SIZE: toStoredSize,
    STATE: ({ name, state }) => (isBeingPulled(overview, name) ? 'being pulled' : state),
    SERVES: ({ models, deployments }) =>
      [...models, ...deployments.map((one) => `deployment ${one}`)].join(', ') || '-',
  });

export const toStoredSize = ({ state, bytes, bytes_on_disk }: WeightsOverview['data'][number]) =>
  state === 'whole' ? toSize(bytes) : `${toSize(bytes_on_disk)} of ${toSize(bytes)}`;

export const readOverview = () =>
  createClient('session').get<WeightsOverview>('/dashboard/api/weights');

export function servedBy(backends: readonly BackendView[], id: string): string {
  const own = backends.filter(({ model }) => model === id);
  if (own.length === 0) return 'no backend';
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
): { listed?: boolean; aliases?: string[]; weights?: string | null; backends?: BackendView[] } {
  if (overview === null) return {};
  const model = overview.models.find((one) => one.id === id);
  return {
    listed: model?.listed ?? true,
    aliases: model?.aliases ?? [],
    weights: model?.weights ?? null,
    backends: backends.filter(({ model }) => model === id),
  };
}

export const isBeingPulled = ({ pulls }: WeightsOverview, name: string) =>
  pulls.some((pull) => pull.name === name && (pull.state === 'queued' || pull.state === 'running'));
