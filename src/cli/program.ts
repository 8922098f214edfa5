// The table of all commands. Each noun has a folder, and there a table of its verbs.

import { Command, CommanderError } from 'commander';
import { wantsDetails } from '#config/environment.ts';
import millrace from '../../package.json' with { type: 'json' };
import { chooseContext } from './credentials.ts';
import { CliError, toPrintableLines } from './output.ts';
import { nameProgram } from './program-name.ts';

/** In the order of the help. */
const commands: Readonly<Record<string, () => Promise<Command>>> = {
  serve: async () => (await import('#cli/server/serve.ts')).serveCommand(),
  status: async () => (await import('#cli/server/status.ts')).statusCommand(),
  open: async () => (await import('#cli/server/open.ts')).openCommand(),
  logs: async () => (await import('#cli/server/logs.ts')).logsCommand(),
  doctor: async () => (await import('#cli/server/doctor.ts')).doctorCommand(),
  config: async () => (await import('#cli/config/command.ts')).configCommand(),
  backup: async () => (await import('#cli/backup/create.ts')).backupCommand(),
  restore: async () => (await import('#cli/backup/restore.ts')).restoreCommand(),
  gpu: async () => (await import('#cli/gpu/command.ts')).gpuCommand(),
  team: async () => (await import('#cli/team/command.ts')).teamCommand(),
  login: async () => (await import('#cli/session/login.ts')).loginCommand(),
  logout: async () => (await import('#cli/session/logout.ts')).logoutCommand(),
  whoami: async () => (await import('#cli/session/whoami.ts')).whoamiCommand(),
  context: async () => (await import('#cli/context/command.ts')).contextCommand(),
  keys: async () => (await import('#cli/keys/command.ts')).keysCommand(),
  limits: async () => (await import('#cli/limits/command.ts')).limitsCommand(),
  'ssh-keys': async () => (await import('#cli/ssh-keys/command.ts')).sshKeysCommand(),
  instances: async () => (await import('#cli/instances/command.ts')).instancesCommand(),
  filesystems: async () => (await import('#cli/filesystems/command.ts')).filesystemsCommand(),
  firewall: async () => (await import('#cli/firewall/command.ts')).firewallCommand(),
  hosts: async () => (await import('#cli/hosts/command.ts')).hostsCommand(),
  images: async () => (await import('#cli/images/command.ts')).imagesCommand(),
  run: async () => (await import('#cli/chat/run.ts')).runCommand(),
  chat: async () => (await import('#cli/chat/chat.ts')).chatCommand(),
  models: async () => (await import('#cli/models/command.ts')).modelsCommand(),
  backends: async () => (await import('#cli/backends/command.ts')).backendsCommand(),
  batches: async () => (await import('#cli/batches/command.ts')).batchesCommand(),
  deploy: async () => (await import('#cli/deployments/deploy.ts')).deployCommand(),
  deployments: async () => (await import('#cli/deployments/command.ts')).deploymentsCommand(),
  usage: async () => (await import('#cli/usage/command.ts')).usageCommand(),
  requests: async () => (await import('#cli/requests/command.ts')).requestsCommand(),
  audit: async () => (await import('./audit.ts')).auditCommand(),
  completion: async () => (await import('./completion.ts')).completionCommand(),
};

/** Commands that Millrace itself runs. They are neither in the help nor completed. */
const internalCommands: typeof commands = {
  engine: async () => (await import('#cli/deployments/engine.ts')).engineCommand(),
};

/** With all commands, with one of them, or with none if `only` names none. */
export async function createProgram(only?: string): Promise<Command> {
  const program = new Command('millrace')
    .description('A GPU cloud and model API on your own machines.')
    .version(millrace.version, '-V, --version', 'Print the version')
    .option(
      '--context <name>',
      'Server to talk to, from `millrace context list`; also MILLRACE_CONTEXT',
    )
    .hook('preAction', (program) => {
      const { context } = program.opts<{ context?: string }>();
      if (context !== undefined) chooseContext(context);
    });
  for (const [name, load] of Object.entries(commands))
    if (only === undefined || name === only) program.addCommand(await load());
  const internal = internalCommands[only ?? ''];
  if (internal !== undefined) program.addCommand(await internal());
  return program;
}

/**
 * Returns the one command to load, or undefined to load all. None takes 0.11 s of CPU time, one
 * 0.14 s, all take 0.30 s. `completion` needs all of them, and the version none.
 */
const findCommand = (word = '') => {
  const isCommand = Object.hasOwn(commands, word) || Object.hasOwn(internalCommands, word);
  const isEnough = isCommand || word === '--version' || word === '-V';
  return isEnough && word !== 'completion' ? word : undefined;
};

/** Resolves to the exit code: 0 success, 1 failure, 2 wrong usage, 130 interrupted. */
export async function runCli(argv: readonly string[]): Promise<number> {
  const program = await createProgram(findCommand(argv[2]));
  forEveryCommand(program, configure);
  try {
    await program.parseAsync(argv);
    return 0;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    if (error instanceof CliError) {
      if (error.message !== '') console.error(toPrintableLines(nameProgram(error.message)));
      if (error.cause !== undefined && wantsDetails()) console.error(toStack(error.cause));
      return error.exitCode;
    }
    return reportUnexpected(error);
  }
}

/** Handles an error that no command expected. The stack is printed only on request. */
function reportUnexpected(error: unknown): number {
  const { message } = error instanceof Error ? error : { message: String(error) };
  console.error(
    wantsDetails()
      ? toStack(error)
      : `Unexpected error: ${message.split('\n')[0]} (Set MILLRACE_LOG_LEVEL=debug for the stack trace.)`,
  );
  return 1;
}

/** Returns only the text: other members of an error can hold secrets, such as a database URL. */
const toStack = (error: unknown) =>
  error instanceof Error ? (error.stack ?? error.message) : String(error);

/** Commander copies these settings only to commands it creates itself. */
function configure(command: Command): void {
  command
    .exitOverride()
    .showHelpAfterError('Add --help to see the usage.')
    .helpOption('-h, --help', 'Show this help')
    .configureHelp({ showGlobalOptions: true });
  if (command.commands.length > 0) command.helpCommand('help [command]', 'Show help for a command');
}

function forEveryCommand(command: Command, action: (command: Command) => void): void {
  action(command);
  for (const child of command.commands) forEveryCommand(child, action);
}
