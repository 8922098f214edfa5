// Every command, as a table of contents. Each verb is a file in the folder of its noun.

import { Command, CommanderError } from 'commander';
import { backendsCommand } from '#cli/backends/command.ts';
import { configCommand } from '#cli/config/command.ts';
import { filesystemsCommand } from '#cli/filesystems/command.ts';
import { hostsCommand } from '#cli/hosts/command.ts';
import { imagesCommand } from '#cli/images/command.ts';
import { instancesCommand } from '#cli/instances/command.ts';
import { keysCommand } from '#cli/keys/command.ts';
import { limitsCommand } from '#cli/limits/command.ts';
import { modelsCommand } from '#cli/models/command.ts';
import { loginCommand } from '#cli/session/login.ts';
import { logoutCommand } from '#cli/session/logout.ts';
import { whoamiCommand } from '#cli/session/whoami.ts';
import { sshKeysCommand } from '#cli/ssh-keys/command.ts';
import { usageCommand } from '#cli/usage/command.ts';
import { wantsDetails } from '#config/load.ts';
import millrace from '../../package.json' with { type: 'json' };
import { CliError, toShown } from './output.ts';
import { serveCommand } from './serve.ts';

/** Resolves to the exit code: 0 done, 1 refused or failed, 2 not understood. */
export async function runCli(argv: readonly string[]): Promise<number> {
  const program = new Command('millrace')
    .description('A GPU cloud and model API on your own machines.')
    .version(millrace.version)
    .showHelpAfterError('(add --help for how it is used)')
    .addCommand(serveCommand())
    .addCommand(configCommand())
    .addCommand(loginCommand())
    .addCommand(logoutCommand())
    .addCommand(whoamiCommand())
    .addCommand(keysCommand())
    .addCommand(limitsCommand())
    .addCommand(sshKeysCommand())
    .addCommand(instancesCommand())
    .addCommand(filesystemsCommand())
    .addCommand(hostsCommand())
    .addCommand(imagesCommand())
    .addCommand(modelsCommand())
    .addCommand(backendsCommand())
    .addCommand(usageCommand());
  forEveryCommand(program, (command) => command.exitOverride());
  try {
    await program.parseAsync(argv);
    return 0;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    if (error instanceof CliError) {
      if (error.message !== '') console.error(error.message.split('\n').map(toShown).join('\n'));
      if (error.cause !== undefined && wantsDetails()) console.error(toStack(error.cause));
      return error.exitCode;
    }
    return reportUnexpected(error);
  }
}

/** The last resort: a stack is for those who asked for one. */
function reportUnexpected(error: unknown): number {
  const { message } = error instanceof Error ? error : { message: String(error) };
  console.error(
    wantsDetails()
      ? toStack(error)
      : `Something went wrong: ${message.split('\n')[0]} (MILLRACE_LOG_LEVEL=debug shows details.)`,
  );
  return 1;
}

/** The text alone: an error's other members can hold secrets, such as the address of a database. */
const toStack = (error: unknown) =>
  error instanceof Error ? (error.stack ?? error.message) : String(error);

function forEveryCommand(command: Command, action: (command: Command) => void): void {
  action(command);
  for (const child of command.commands) forEveryCommand(child, action);
}
