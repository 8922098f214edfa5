// The table of all commands. Each noun has a folder, each verb a file in it.

import { Command, CommanderError } from 'commander';
import { backendsCommand } from '#cli/backends/command.ts';
import { backupCommand } from '#cli/backup/create.ts';
import { restoreCommand } from '#cli/backup/restore.ts';
import { batchesCommand } from '#cli/batches/command.ts';
import { chatCommand } from '#cli/chat/chat.ts';
import { runCommand } from '#cli/chat/run.ts';
import { configCommand } from '#cli/config/command.ts';
import { contextCommand } from '#cli/context/command.ts';
import { deploymentsCommand } from '#cli/deployments/command.ts';
import { deployCommand } from '#cli/deployments/deploy.ts';
import { filesystemsCommand } from '#cli/filesystems/command.ts';
import { firewallCommand } from '#cli/firewall/command.ts';
import { gpuCommand } from '#cli/gpu/command.ts';
import { hostsCommand } from '#cli/hosts/command.ts';
import { imagesCommand } from '#cli/images/command.ts';
import { instancesCommand } from '#cli/instances/command.ts';
import { keysCommand } from '#cli/keys/command.ts';
import { limitsCommand } from '#cli/limits/command.ts';
import { modelsCommand } from '#cli/models/command.ts';
import { requestsCommand } from '#cli/requests/command.ts';
import { loginCommand } from '#cli/session/login.ts';
import { logoutCommand } from '#cli/session/logout.ts';
import { whoamiCommand } from '#cli/session/whoami.ts';
import { sshKeysCommand } from '#cli/ssh-keys/command.ts';
import { teamCommand } from '#cli/team/command.ts';
import { usageCommand } from '#cli/usage/command.ts';
import { wantsDetails } from '#config/load.ts';
import millrace from '../../package.json' with { type: 'json' };
import { auditCommand } from './audit.ts';
import { completionCommand } from './completion.ts';
import { chooseContext } from './credentials.ts';
import { doctorCommand } from './doctor.ts';
import { logsCommand } from './logs.ts';
import { openCommand } from './open.ts';
import { CliError, toPrintableLines } from './output.ts';
import { nameProgram } from './program-name.ts';
import { serveCommand } from './serve.ts';
import { statusCommand } from './status.ts';

export function createProgram(): Command {
  return new Command('millrace')
    .description('A GPU cloud and model API on your own machines.')
    .version(millrace.version, '-V, --version', 'Print the version')
    .option(
      '--context <name>',
      'Server to talk to, from `millrace context list`; also MILLRACE_CONTEXT',
    )
    .hook('preAction', (program) => {
      const { context } = program.opts<{ context?: string }>();
      if (context !== undefined) chooseContext(context);
    })
    .addCommand(serveCommand())
    .addCommand(statusCommand())
    .addCommand(openCommand())
    .addCommand(logsCommand())
    .addCommand(doctorCommand())
    .addCommand(configCommand())
    .addCommand(backupCommand())
    .addCommand(restoreCommand())
    .addCommand(gpuCommand())
    .addCommand(teamCommand())
    .addCommand(loginCommand())
    .addCommand(logoutCommand())
    .addCommand(whoamiCommand())
    .addCommand(contextCommand())
    .addCommand(keysCommand())
    .addCommand(limitsCommand())
    .addCommand(sshKeysCommand())
    .addCommand(instancesCommand())
    .addCommand(filesystemsCommand())
    .addCommand(firewallCommand())
    .addCommand(hostsCommand())
    .addCommand(imagesCommand())
    .addCommand(runCommand())
    .addCommand(chatCommand())
    .addCommand(modelsCommand())
    .addCommand(backendsCommand())
    .addCommand(batchesCommand())
    .addCommand(deployCommand())
    .addCommand(deploymentsCommand())
    .addCommand(usageCommand())
    .addCommand(requestsCommand())
    .addCommand(auditCommand())
    .addCommand(completionCommand());
}

/** Resolves to the exit code: 0 success, 1 failure, 2 wrong usage, 130 interrupted. */
export async function runCli(argv: readonly string[]): Promise<number> {
  const program = createProgram();
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
