// millrace models pull: asks the server for weights and watches them come. The server does the work, so
// leaving costs nothing.

import { setTimeout as sleep } from 'node:timers/promises';
import { Command } from 'commander';
import { type Client, createClient } from '#cli/client.ts';
import { CliError, printJson } from '#cli/output.ts';
import type { Pull, WeightsOverview } from '#inference/weights/schema.ts';
import { createProgressBar, toSize } from './progress.ts';

interface Options {
  quant?: string;
  as?: string;
  detach?: true;
  cancel?: true;
  keep?: true;
  json?: true;
}

const examples = `
Examples:
  millrace models pull llama3.1-8b-instruct
  millrace models pull llama3.1-8b-instruct --quant Q8_0
  millrace models pull owner/repository file-Q4_K_M.gguf --as llama3.1-8b-instruct
  millrace models pull hf.co/owner/repository:Q4_K_M --detach
  millrace models pull llama3.1-8b-instruct --cancel

Without --quant or a file: Q4_K_M if there is one, else the nearest to it in use. Ctrl-C stops watching;
the server goes on.`;

export function pullCommand(): Command {
  return new Command('pull')
    .description('fetch GGUF weights from the hub to the server’s disk, and serve them')
    .argument('<id or repository>', 'a model id, owner/repository, or an address on the hub')
    .argument('[file]', 'a file of the repository; of split weights any part')
    .option('--quant <name>', 'a quantisation, e.g. Q8_0')
    .option('--as <id>', 'the model id that these weights shall serve')
    .option('--detach', 'do not wait for it')
    .option('--cancel', 'cancel this pull, named as it was asked for or by its id')
    .option('--keep', 'with --cancel: keep what has come, for another time')
    .option('--json', 'print the pull as JSON when it ends')
    .addHelpText('after', examples)
    .action(pull);
}

async function pull(what: string, file: string | undefined, options: Options): Promise<void> {
  const client = createClient('session');
  if (options.cancel) return cancel(client, what, file, options.keep === true);
  const source = what.includes('/') ? { repo: what } : { model: what };
  const started = await client.post<Pull>('/dashboard/api/weights/pulls', {
    ...source,
    file: file ?? null,
    quant: options.quant ?? null,
    as: options.as ?? null,
  });
  if (!options.json) console.log(`Pulling ${started.name} (${toSize(started.bytes_total)}).`);
  if (options.detach) {
    return options.json
      ? printJson(started)
      : console.log(`The server goes on. ${toHint(started)}`);
  }
  const ended = await watch(client, started);
  if (ended === null)
    return console.log(`Stopped watching; the server goes on. ${toHint(started)}`);
  if (options.json) printJson(ended);
  if (ended.state === 'failed') throw new CliError(ended.error ?? 'The pull failed.');
  if (ended.state === 'cancelled') throw new CliError('The pull was cancelled.');
  if (options.json) return;
  console.log(
    ended.model === null
      ? `${ended.name} is on disk, verified. Give it an id to serve with --as.`
      : `${ended.model} is served by ${ended.name} now. Its checksum is right.`,
  );
}

/** Null when the person would rather not wait. */
async function watch(client: Client, started: Pull): Promise<Pull | null> {
  const bar = createProgressBar(process.stderr);
  const left = new AbortController();
  const leave = () => left.abort();
  process.once('SIGINT', leave);
  try {
    for (let pull = started; ; ) {
      if (pull.state === 'running' || pull.state === 'queued') {
        bar.show(pull.bytes_done, pull.bytes_total, pull.state === 'queued' ? 'waiting' : '');
      } else {
        if (pull.state === 'done') bar.show(pull.bytes_total, pull.bytes_total, '');
        return pull;
      }
      await sleep(300, undefined, { signal: left.signal });
      pull = await client.get<Pull>(`/dashboard/api/weights/pulls/${pull.id}`);
    }
  } catch (error) {
    if (left.signal.aborted) return null;
    throw error;
  } finally {
    process.off('SIGINT', leave);
    bar.end();
  }
}

async function cancel(
  client: Client,
  what: string,
  file: string | undefined,
  keep: boolean,
): Promise<void> {
  const { pulls } = await client.get<WeightsOverview>('/dashboard/api/weights');
  const found = pulls.filter(
    ({ id, model, name, repo, files, state }) =>
      (state === 'queued' || state === 'running') &&
      [id, model, name, repo].includes(what) &&
      (file === undefined || files.includes(file)),
  );
  const [only] = found;
  if (only === undefined) throw new CliError(`No pull of ${what} is under way.`);
  if (found.length > 1) {
    const ids = found.map(({ id, name }) => `${id} (${name})`).join(', ');
    throw new CliError(`Several pulls match; name one by its id: ${ids}.`);
  }
  await client.delete(`/dashboard/api/weights/pulls/${only.id}${keep ? '?keep=true' : ''}`);
  console.log(keep ? 'Cancelled. What has come is kept.' : 'Cancelled. What had come is removed.');
}

const toHint = ({ id }: Pull) => `To cancel: millrace models pull ${id} --cancel`;
