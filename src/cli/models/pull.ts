// millrace models pull: makes the server download weights, and shows the progress. The server does the work,
// so the command may be interrupted at any time.

import { setTimeout as sleep } from 'node:timers/promises';
import { Command } from 'commander';
import { type Client, createClient } from '#cli/client.ts';
import { CliError, printJson, printText, report } from '#cli/output.ts';
import { startByteProgress } from '#cli/progress.ts';
import type { Pull, WeightsOverview } from '#inference/weights/schema.ts';
import { toSize } from '#lib/text/format.ts';

interface Options {
  quant?: string;
  as?: string;
  detach?: true;
  cancel?: true;
  keep?: true;
  json?: true;
}

const pollIntervalMs = 300;

const examples = `
Examples:
  millrace models pull llama3.1-8b-instruct
  millrace models pull llama3.1-8b-instruct --quant Q8_0
  millrace models pull owner/repository file-Q4_K_M.gguf --as llama3.1-8b-instruct
  millrace models pull hf.co/owner/repository:Q4_K_M --detach
  millrace models pull llama3.1-8b-instruct --cancel

Without --quant or a file, Q4_K_M is pulled, or the most similar quantisation in common use. Ctrl-C stops
watching; the server continues the download.`;

export function pullCommand(): Command {
  return new Command('pull')
    .description("Download GGUF weights from the hub to the server's disk, and serve them")
    .argument('<id or repository>', 'Model id, owner/repository, or URL on the hub')
    .argument('[file]', 'File of the repository; any part of split weights')
    .option('--quant <name>', 'Quantisation, e.g. Q8_0')
    .option('--as <id>', 'Model id that the weights will serve')
    .option('--detach', 'Return at once; the server continues the download')
    .option('--cancel', 'Cancel a pull, named by the same arguments or by its id')
    .option('--keep', 'With --cancel: keep the downloaded part for a later pull')
    .option('--json', 'Print the pull as JSON when it ends')
    .addHelpText('after', examples)
    .action(pull);
}

async function pull(what: string, file: string | undefined, options: Options): Promise<void> {
  const client = createClient('session');
  if (options.cancel) return cancel(client, what, file, options);
  const source = what.includes('/') ? { repo: what } : { model: what };
  const started = await client.post<Pull>('/dashboard/api/weights/pulls', {
    ...source,
    file: file ?? null,
    quant: options.quant ?? null,
    as: options.as ?? null,
  });
  if (!options.json) printText(`Pulling ${started.name} (${toSize(started.bytes_total)}).`);
  if (options.detach) {
    return options.json
      ? printJson(started)
      : printText(`The server continues the download. ${toHint(started)}`);
  }
  const ended = await watch(client, started);
  if (options.json) printJson(ended);
  if (ended.state === 'failed') throw new CliError(ended.error ?? 'The pull failed.');
  if (ended.state === 'cancelled') throw new CliError('The pull was cancelled.');
  if (options.json) return;
  printText(
    ended.model === null
      ? `${ended.name} is on disk and its checksum is correct. Pull it again with --as to serve it.`
      : `${ended.model} is now served by ${ended.name}. Its checksum is correct.`,
  );
}

/** Polls the pull until it ends. Ctrl-C exits the process; the server continues. */
async function watch(client: Client, started: Pull): Promise<Pull> {
  const progress = await startByteProgress(started.bytes_total, {
    onInterrupt: `Stopped watching. The server continues the download. ${toHint(started)}`,
  });
  try {
    for (let pull = started; ; ) {
      if (pull.state === 'done') progress.show(pull.bytes_total);
      if (pull.state !== 'running' && pull.state !== 'queued') return pull;
      progress.show(pull.bytes_done, pull.state === 'queued' ? 'queued' : '');
      await sleep(pollIntervalMs);
      pull = await client.get<Pull>(`/dashboard/api/weights/pulls/${pull.id}`);
    }
  } finally {
    progress.end();
  }
}

async function cancel(
  client: Client,
  what: string,
  file: string | undefined,
  { keep, json }: Options,
): Promise<void> {
  const { pulls } = await client.get<WeightsOverview>('/dashboard/api/weights');
  const found = pulls.filter(
    ({ id, model, name, repo, files, state }) =>
      (state === 'queued' || state === 'running') &&
      ([id, model, name, repo].includes(what) || (what.length >= 4 && id.startsWith(what))) &&
      (file === undefined || files.includes(file)),
  );
  const [only] = found;
  if (only === undefined) throw new CliError(`No pull of ${what} is in progress.`);
  if (found.length > 1) {
    const ids = found.map(({ id, name }) => `${id} (${name})`).join(', ');
    throw new CliError(`Several pulls match ${what}. Give the id: ${ids}.`);
  }
  await client.delete(`/dashboard/api/weights/pulls/${only.id}${keep ? '?keep=true' : ''}`);
  report(only, `Cancelled. The downloaded part is ${keep ? 'kept' : 'deleted'}.`, json);
}

const toHint = ({ id }: Pull) => `To cancel: millrace models pull ${id} --cancel`;
