// millrace models show: one model, its backends and its weights.

import { Command } from 'commander';
import { readBackends } from '#cli/backends/find.ts';
import { CliError, toFacts } from '#cli/output.ts';
import { addView, type View } from '#cli/view.ts';
import { programName } from '#config/environment.ts';
import type { WeightsOverview } from '#inference/weights/schema.ts';
import { toCounted, toPricePair } from '#lib/text/format.ts';
import { nearest } from '#lib/text/nearest.ts';
import { isBeingPulled, readOverview, servedBy, toStoredSize } from './list.ts';

export function showCommand(): Command {
  const command = new Command('show')
    .description('Show the owner, context window, prices, hub repositories and backends of a model')
    .argument('<id>', 'Model id, from `millrace models list`')
    .addHelpText('after', '\nExample:\n  millrace models show llama3.1-8b-instruct');
  return addView(command, show);
}

async function show(id: string): Promise<View> {
  const [overview, backends] = await Promise.all([readOverview(), readBackends()]);
  const model = overview.models.find((one) => one.id === id);
  if (model === undefined) {
    const match = nearest(
      id,
      overview.models.map((one) => one.id),
    );
    const hint = match ? `Did you mean ${match}?` : 'See `millrace models list`.';
    throw new CliError(`There is no model ${id}. ${hint}`);
  }
  const stored = overview.data.filter(
    ({ models, repo }) =>
      models.includes(id) || repo === model.gguf_repo || repo === model.safetensors_repo,
  );
  const text = toFacts([
    ['Id', model.id],
    ['Owner', model.owned_by],
    ['Context window', toCounted(model.context_window, 'token')],
    ['Price', toPricePair(model.price)],
    ['GGUF weights', model.gguf_repo ?? 'none known'],
    ['Full weights', model.safetensors_repo ?? 'none known'],
    ['Served by', servedBy(backends, id)],
    ...stored.map((one) => ['On disk', describeStored(one, overview)] as const),
  ]);
  const hint = `\n\nPull the real weights with: ${programName()} models pull ${id}`;
  return {
    data: { ...model, on_disk: stored },
    text: model.weights === null && model.gguf_repo !== null ? text + hint : text,
  };
}

const describeStored = (one: WeightsOverview['data'][number], overview: WeightsOverview) =>
  [
    one.name,
    toStoredSize(one),
    one.quant ?? (one.name.endsWith('/safetensors') ? 'safetensors' : 'unknown quantisation'),
    ...(isBeingPulled(overview, one.name) ? ['being pulled'] : []),
  ].join(', ');
