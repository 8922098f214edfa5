// millrace serve: starts the server, prints the start-up table once, and drains on SIGTERM.

import { flushCompileCache } from 'node:module';
import { isatty } from 'node:tty';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { Command } from 'commander';
import { orExplain } from '#cli/config/command.ts';
import { loadConfig } from '#config/load.ts';
import { overrides } from '#config/schema.ts';
import { StartError } from '#lib/start-error.ts';
import type { RunningServer } from '#server/start.ts';
import { CliError } from './output.ts';

export function serveCommand(): Command {
  const command = new Command('serve')
    .description('start the server')
    .option('--config <file>', 'the configuration; millrace.yaml when there is one');
  for (const { flag, env } of overrides) if (flag !== null) command.option(flag, `also ${env}`);
  return command.action(serve);
}

async function serve(options: Record<string, string>): Promise<void> {
  const flags = Object.fromEntries(
    overrides.map(({ path, flag }) => [
      path,
      flag === null ? undefined : options[toOptionName(flag)],
    ]),
  );
  const load = () => loadConfig({ ...flags, config: options.config });
  const server = await start(orExplain(load));
  const stopping = signalled(() => server.reload(load));
  process.stdout.write(renderTable(server));
  // Otherwise written at the end, and whoever starts beside this server would compile everything anew.
  flushCompileCache();
  giveBackMemory();
  await stopping;
  console.error('Stopping. Running requests may finish; a second signal ends at once.');
  await server.stop();
}

async function start(loaded: ReturnType<typeof loadConfig>): Promise<RunningServer> {
  // Only this command pays for loading the server.
  const { startServer } = await import('#server/start.ts');
  try {
    return await startServer(loaded);
  } catch (error) {
    throw explain(error, loaded.config.server);
  }
}

/** What the database and the files refuse says so itself; what is left of the network is listening. */
function explain(error: unknown, { host, port }: { host: string; port: number }): unknown {
  if (error instanceof StartError) return new CliError(error.message, 1, error.cause);
  const { syscall, code, message } = error as NodeJS.ErrnoException;
  if (syscall === 'getaddrinfo') {
    return new CliError(`Can't listen on ${host}: no address is known by this name (${code}).`);
  }
  if (syscall !== 'listen') return error;
  if (code === 'EADDRINUSE') {
    return new CliError(`Port ${port} on ${host} is taken. Choose another with --port.`);
  }
  return new CliError(`Can't listen on ${host}:${port}: ${message}`);
}

/** Resolves at the first signal to stop; the second ends the process where it stands. */
function signalled(reload: () => void): Promise<void> {
  return new Promise((resolve) => {
    let seen = false;
    const receive = () => {
      if (seen) process.exit(1);
      seen = true;
      resolve();
    };
    for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, receive);
    // The same signal says that the terminal was closed, and then it means to stop.
    const hadTerminal = isatty(0);
    process.on('SIGHUP', () => (hadTerminal && !isatty(0) ? receive() : reload()));
  });
}

/** What starting took and serving does not need; the heap grows again when there is work for it. */
function giveBackMemory(): void {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as (how: object) => void;
  collect({ type: 'major', flavor: 'last-resort' });
}

const builtinSentence = 'the small built-in model answers until a model has its own backend';

function renderTable(server: RunningServer): string {
  const { url, firstApiKey, setupLink, database, standIn, machines } = server;
  const rows = [
    ['Inference API', `${url}/v1`],
    ['Cloud API', `${url}/api/v1`],
    ['Dashboard', url],
    ...(setupLink === null ? [] : [['Set-up link', `${setupLink}  (works once)`]]),
    ...(firstApiKey === null ? [] : [['First API key', `${firstApiKey}  (not shown again)`]]),
    [
      'Models',
      standIn === 'builtin' ? builtinSentence : `${standIn} answers until a model has its own`,
    ],
    ['Machines', machines],
    ['State', database],
    ['API docs', `${url}/docs`],
  ];
  return `\n  Millrace\n\n${rows.map(([name, value]) => `  ${name?.padEnd(14)} ${value}`).join('\n')}\n\n`;
}

/** `--data-dir <path>` is `dataDir` among commander's options. */
function toOptionName(flag: string): string {
  const word = (flag.split(' ')[0] as string).slice(2);
  return word.replaceAll(/-(\w)/g, (_, letter: string) => letter.toUpperCase());
}
