// millrace team reset: prints a one-time link that sets a new password. It writes to the database itself, so it works
// whether the server runs or not, and needs no session.

import { Command } from 'commander';
import { CliError, printJson } from '#cli/output.ts';
import {
  findInstallation,
  type InstallationOptions,
  withInstallation,
} from '#cli/server/installation.ts';
import { toMinute } from '#cli/time.ts';
import { StartError } from '#lib/start-error.ts';

export function resetCommand(): Command {
  const command = new Command('reset')
    .description('Print a one-time link that sets a new password; run it on the server')
    .argument('<email>', 'Email address of the person')
    .option('--url <url>', 'URL of the server in the link (default: from the configuration)')
    .option('--json', 'Print JSON');
  return withInstallation(command)
    .addHelpText(
      'after',
      '\nThe link works once, for an hour. Using it signs the person out everywhere else.\nThe server may run meanwhile; if it does not, start it before you open the link.',
    )
    .action(reset);
}

async function reset(
  email: string,
  { url, json, ...options }: InstallationOptions & { url?: string; json?: true },
): Promise<void> {
  const config = findInstallation(options);
  // Only this command pays for loading the database.
  const { createResetLink } = await import('#server/reset-link.ts');
  const made = await createResetLink(config, email, url ?? null).catch((error: unknown) => {
    if (error instanceof StartError) throw new CliError(error.message, 1, error.cause);
    throw error;
  });
  if (made === null) {
    throw new CliError(`No user has the email address ${email}. Owners see all users under Team.`);
  }
  if (json) return printJson({ link: made.link, expires_at: made.expiresAt.toISOString() });
  const until = toMinute(made.expiresAt.toISOString());
  console.error(`Open this link before ${until} UTC. It works once.`);
  console.log(made.link);
  // A variable such as MILLRACE_PORT may have been set for the server only.
  if (url === undefined && config.server.public_url === null) {
    console.error(
      'The address is from the settings server.host and server.port as this command sees them. If the server was started with others, use --url.',
    );
  }
}
