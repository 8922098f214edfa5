// millrace deployments fits: whether a model fits the memory of the server and of each instance type.

import { Command } from 'commander';
import { createClient } from '#cli/client.ts';
import { toTable } from '#cli/output.ts';
import { toQuery } from '#cli/pages.ts';
import { addView } from '#cli/view.ts';
import type { FitsView, KnownModelView } from '#deployments/ground/schema.ts';
import { deploymentsPath } from './find.ts';

interface FitsOptions {
  engine?: string;
  source?: string;
  target?: string;
  tokens?: string;
}

export function fitsCommand(): Command {
  const command = new Command('fits')
    .description('Compute whether a model fits; without a model, list known ones')
    .argument(
      '[model]',
      'Model id, repository of the hub, or path of a GGUF file or a folder on the server',
    )
    .option('--engine <kind>', 'builtin, llama-server, vllm or sglang (default: vllm)')
    .option('--source <weights>', 'The weights, if they are not those of the model')
    .option('--target <number>', 'Requests that run at the same time (default: 8)')
    .option(
      '--tokens <number>',
      'Tokens of each request (default: 8192; vLLM also needs room for one request of the whole window)',
    );
  return addView(command, async (model: string | undefined) => {
    const client = createClient('any');
    if (model === undefined) {
      const { data } = await client.get<{ data: KnownModelView[] }>(`${deploymentsPath}/-/models`);
      return { data, text: renderKnown(data) };
    }
    const { engine, source, target, tokens } = command.opts<FitsOptions>();
    const query = toQuery({ model, engine, source, target, context: tokens });
    const path = `${deploymentsPath}/-/fits?${query}`;
    const { data } = await client.get<{ data: FitsView }>(path);
    return { data, text: render(data) };
  });
}

const renderKnown = (models: readonly KnownModelView[]) =>
  toTable('known models', models, {
    MODEL: ({ source }) => source,
    PARAMETERS: ({ parameters_billions }) => `${parameters_billions} billion`,
    CONTEXT: ({ context_window }) => String(context_window),
    LICENCE: ({ licence }) => licence,
  });

function render({ model, source, parameters_billions, licence, need, places }: FitsView): string {
  if (need === null)
    return `What ${source ?? model} needs is not known: it is neither on the server nor a known model.`;
  const known =
    parameters_billions === null ? [] : [`${parameters_billions} billion parameters, ${licence}`];
  const { total_gib, weights_gib, cache_gib, overhead_gib, requests, tokens } = need;
  const cache = `${requests} × ${tokens.toLocaleString('en-US')} tokens`;
  return [
    ...known,
    `Needs ${total_gib} GiB: weights ${weights_gib}, KV cache ${cache_gib} (${cache}), overhead ${overhead_gib}`,
    '',
    toTable('places', places, {
      PLACE: ({ name }) => name,
      MEMORY: ({ usable_gib }) => `${usable_gib} GiB`,
      FITS: ({ fits }) => (fits ? 'yes' : 'no'),
    }),
  ].join('\n');
}
