// millrace models show: one model, and what stands behind it on this server.

import { Command } from 'commander';
import { readBackends } from '#cli/backends/list.ts';
import { CliError, printJson } from '#cli/output.ts';
import { nearest } from '#lib/nearest.ts';
import { isPulled, readOverview, servedBy } from './list.ts';
import { toSize } from './progress.ts';

export function showCommand(): Command {
  return new Command('show')
    .description('show a model: owner, window, prices, hub repositories, what serves it')
    .argument('<id>', 'from `millrace models list`')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  millrace models show llama3.1-8b-instruct')
    .action(show);
}

async function show(id: string, { json }: { json?: true }): Promise<void> {
  const [overview, backends] = await Promise.all([readOverview(), readBackends()]);
  const model = overview.models.find((one) => one.id === id);
  if (model === undefined) {
    const match = nearest(
      id,
      overview.models.map((one) => one.id),
    );
    throw new CliError(`There is no model ${id} here.${match ? ` Did you mean ${match}?` : ''}`);
  }
  const stored = overview.data.filter(
    ({ models, repo }) => models.includes(id) || repo === model.gguf_repo,
  );
  if (json) return printJson({ ...model, on_disk: stored });
  const rows = [
    ['Id', model.id],
    ['Owner', model.owned_by],
    ['Context window', `${model.context_window} tokens`],
    ['Price', `$${model.price.input} in, $${model.price.output} out, per million tokens`],
    ['GGUF weights', model.gguf_repo ?? 'none known'],
    ['Whole weights', model.safetensors_repo ?? 'none known'],
    ['Served by', servedBy(backends, id)],
    ...stored.map(({ name, bytes, bytes_on_disk, state, quant }) => [
      'On disk',
      [
        name,
        state === 'whole' ? toSize(bytes) : `${toSize(bytes_on_disk)} of ${toSize(bytes)}`,
        quant ?? 'unknown quantisation',
        ...(isPulled(overview, name) ? ['being pulled'] : []),
      ].join(', '),
    ]),
  ];
  console.log(rows.map(([name, value]) => `${name?.padEnd(15)} ${value}`).join('\n'));
  if (model.weights === null && model.gguf_repo !== null) {
    console.log(`\nFetch the real weights with: millrace models pull ${id}`);
  }
}
