// millrace engine: the process of a deployment with the built-in engine. Millrace starts it, and
// it is in no help.

import { Command } from 'commander';
import { toNumber } from '#cli/number-option.ts';
import { CliError } from '#cli/output.ts';
import { readEngineEnvironment } from '#config/environment.ts';
import { startBuiltinEngine } from '#deployments/engines/builtin/main.ts';
import { StartError } from '#lib/start-error.ts';

interface EngineOptions {
  readonly port: number;
  readonly threads?: number;
  readonly ctxSize?: number;
}

export const engineCommand = (): Command =>
  new Command('engine')
    .description('Serve one model to a Millrace server, which starts this command')
    .argument('[file]', 'GGUF file (default: the model that is built in)')
    .requiredOption('--port <number>', 'Port of 127.0.0.1 to listen at', toNumber)
    .option('--threads <number>', 'Threads of the model', toNumber)
    .option('--ctx-size <tokens>', 'Tokens of each request, prompt and completion', toNumber)
    .action(serveModel);

/** Never returns while the engine runs: a signal ends it at once, because its requests were drained before. */
async function serveModel(
  file: string | undefined,
  { port, threads, ctxSize }: EngineOptions,
): Promise<void> {
  const { key, poolThreads } = readEngineEnvironment();
  if (key === null) throw new CliError('Set MILLRACE_API_KEY to the key that requests must have.');
  // With more, a sample of a batch could overtake the batch.
  if (poolThreads !== 1) throw new CliError('Set UV_THREADPOOL_SIZE to 1.');
  try {
    await startBuiltinEngine({
      ...{ file: file ?? null, port, key },
      ...{ threads: threads ?? null, contextSize: ctxSize ?? null },
    });
  } catch (error) {
    throw error instanceof StartError ? new CliError(error.message, 1, error.cause) : error;
  }
  await new Promise(() => {});
}
