// millrace serve: starts the server, prints the start-up table, reloads on SIGHUP and drains on SIGTERM.

import { isatty } from 'node:tty';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { Command } from 'commander';
import { orExplain } from '#cli/config/command.ts';
import { CliError, wrapText } from '#cli/output.ts';
import { programName } from '#config/environment.ts';
import { schemaAt } from '#config/explain.ts';
import { type Flags, loadConfig } from '#config/load.ts';
import { overrides } from '#config/overrides.ts';
import type { Config } from '#config/schema.ts';
import { findKernels } from '#gpu/kernels.ts';
import { shareCompileCache } from '#lib/computer/compile-cache.ts';
import { findModelObstacle } from '#lib/computer/llama-libraries.ts';
import { StartError } from '#lib/start-error.ts';
import type { RunningServer } from '#server/start.ts';
import { type FirstSecret, removeSecret, writeSecret } from './first-secrets.ts';

export function serveCommand(): Command {
  return addSettings(new Command('serve').description('Start the server')).action(serve);
}

/** Adds the options of commands that accept every setting with a flag. */
export function addSettings(command: Command): Command {
  command.option('--config <file>', 'Configuration file (default: millrace.yaml, if it exists)');
  for (const { flag, path, env } of overrides) {
    if (flag !== null) command.option(flag, `${summarize(path)} (${path}, ${env})`);
  }
  return command;
}

/** Flags by the path of their setting, as `loadConfig` takes them. */
export const readSettings = (options: Record<string, string>): Flags => ({
  ...Object.fromEntries(
    overrides.map(({ path, flag }) => [
      path,
      flag === null ? undefined : options[toOptionName(flag)],
    ]),
  ),
  config: options.config,
});

/** The first sentence of the setting's description. */
function summarize(path: string): string {
  const { description = '' } = schemaAt(path.split('.')) ?? {};
  return description.split(/[.;](?: |$)/)[0] ?? '';
}

async function serve(options: Record<string, string>): Promise<void> {
  const load = () => loadConfig(readSettings(options));
  const loaded = orExplain(load);
  const server = await start(loaded);
  const stopping = waitForStopSignal(() => server.reload(load));
  const { data_dir } = loaded.config;
  const isTerminal = process.stdout.isTTY;
  if (server.setupLink === null || isTerminal) removeSecret(data_dir, 'setup-link');
  const show: ShowSecret = (name, secret, note) =>
    isTerminal ? `${secret}  (${note})` : `in the file ${writeSecret(data_dir, name, secret)}`;
  process.stdout.write(renderTable(server, offerKernels(server, loaded.config), show));
  // Otherwise it is written at exit, and a process started meanwhile would compile everything again.
  shareCompileCache();
  releaseStartupMemory();
  await stopping;
  console.error('Stopping. Waiting for running requests; send the signal again to stop at once.');
  await server.stop();
}

async function start(loaded: ReturnType<typeof loadConfig>): Promise<RunningServer> {
  // Loaded here so that other commands start quickly.
  const { startServer } = await import('#server/start.ts');
  try {
    return await startServer(loaded);
  } catch (error) {
    throw explainStart(error, loaded.config.server);
  }
}

/** Database and file errors explain themselves as a StartError. What is left is listening. */
export function explainStart(
  error: unknown,
  { host, port }: { host: string; port: number },
): unknown {
  if (error instanceof StartError) return new CliError(error.message, 1, error.cause);
  const { syscall, code, message } = error as NodeJS.ErrnoException;
  if (syscall === 'getaddrinfo') {
    return new CliError(
      `Can't listen on ${host}: the name does not resolve to an address (${code}). Set --host to an address of this machine.`,
    );
  }
  if (syscall !== 'listen') return error;
  if (code === 'EADDRINUSE') {
    return new CliError(`Port ${port} on ${host} is already in use. Choose another with --port.`);
  }
  return new CliError(`Can't listen on ${host}:${port}: ${message}`);
}

/** Resolves at the first SIGTERM or SIGINT. The second one exits immediately. */
function waitForStopSignal(reload: () => void): Promise<void> {
  return new Promise((resolve) => {
    let seen = false;
    const receive = () => {
      if (seen) process.exit(1);
      seen = true;
      resolve();
    };
    for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, receive);
    // SIGHUP also reports that the terminal was closed. Then it means stop, not reload.
    const hadTerminal = isatty(0);
    process.on('SIGHUP', () => (hadTerminal && !isatty(0) ? receive() : reload()));
  });
}

/** Starting needs more heap than serving does. It grows again under load. */
function releaseStartupMemory(): void {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as (how: object) => void;
  collect({ type: 'major', flavor: 'last-resort' });
}

function describeModels(standIn: string | null): string {
  const obstacle = findModelObstacle();
  if (obstacle !== '') return `Only models with a backend answer. ${obstacle}`;
  if (standIn === null) return 'Only models with a backend answer: there is no stand-in.';
  return standIn === 'builtin'
    ? 'The stand-in, a small model, answers for every model that never had a backend.'
    : `${standIn} stands in for every model that never had a backend.`;
}

/** What to do if models could run on a GPU here but lack its kernels; empty otherwise. */
function offerKernels({ gpus }: RunningServer, { data_dir, inference }: Config): string {
  if (gpus === '' || !inference.gpu || findKernels(data_dir) !== null) return '';
  return `Models run on the CPU. To run them on the GPU: ${programName()} gpu install`;
}

/** Where the second column of the start-up table begins. */
const tableIndent = 17;

/** Returns the secret, or the file that holds it. */
type ShowSecret = (name: FirstSecret, secret: string, note: string) => string;

function renderTable(server: RunningServer, offer: string, show: ShowSecret): string {
  const { url, firstApiKey, setupLink, database, standIn, machines, networkObstacle, gpus } =
    server;
  const rows = [
    ['Inference API', `${url}/v1`],
    ['Cloud API', `${url}/api/v1`],
    ['Dashboard', url],
    ...(setupLink === null ? [] : [['Set-up link', show('setup-link', setupLink, 'works once')]]),
    ...(firstApiKey === null
      ? []
      : [['First API key', show('first-api-key', firstApiKey, 'not shown again')]]),
    ['Models', wrapText(describeModels(standIn), tableIndent)],
    ['Machines', wrapText(machines, tableIndent)],
    ...(networkObstacle === '' ? [] : [['Network', wrapText(networkObstacle, tableIndent)]]),
    ...(gpus === '' ? [] : [['GPUs', gpus]]),
    ...(offer === '' ? [] : [['', offer]]),
    ['State', database],
    ['API docs', `${url}/docs`],
  ];
  return `\n  Millrace\n\n${rows.map(([name, value]) => `  ${name?.padEnd(14)} ${value}`).join('\n')}\n\n`;
}

/** Commander stores `--data-dir <path>` as `dataDir`. */
function toOptionName(flag: string): string {
  const word = (flag.split(' ')[0] as string).slice(2);
  return word.replaceAll(/-(\w)/g, (_, letter: string) => letter.toUpperCase());
}
