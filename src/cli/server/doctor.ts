// millrace doctor: checks what the server needs on this computer, and says what to do about what is missing.

import { styleText } from 'node:util';
import { Command } from 'commander';
import { CliError, printJson, wrapText } from '#cli/output.ts';
import { programName } from '#config/environment.ts';
import { ConfigError } from '#config/error.ts';
import { loadConfig } from '#config/load.ts';
import { toPrintable } from '#lib/text/printable.ts';
import type { Check } from '#server/doctor.ts';
import { addSettings, explainStart, readSettings } from './serve.ts';

type Options = Record<string, string> & { json?: true };

export function doctorCommand(): Command {
  const command = new Command('doctor')
    .description('Check that this computer has what the server needs, and say how to fix the rest')
    .option('--json', 'Print JSON');
  return addSettings(command)
    .addHelpText(
      'after',
      '\nChecks the configuration, Node, disk, port, namespaces, network tools, GPU, database and hub. Changes nothing, and\nmay run beside the server. Exits with 1 if there is a problem. A warning is not one.',
    )
    .action(doctor);
}

async function doctor({ json, ...options }: Options): Promise<void> {
  const checks = await examineAll(options);
  if (json) printJson(checks);
  else for (const check of checks) console.log(toLine(check));
  if (checks.some(({ status }) => status === 'problem')) throw new CliError('');
}

/** Without a valid configuration there is nothing else to check. */
async function examineAll(options: Record<string, string>): Promise<Check[]> {
  const name = 'Configuration';
  try {
    const { config, file } = loadConfig(readSettings(options));
    // Only this command pays for loading what it checks.
    const { examine } = await import('#server/doctor.ts');
    const explain = (error: unknown) => (explainStart(error, config.server) as Error).message;
    const message = file === null ? 'No file; the defaults are valid.' : `${file} is valid.`;
    return [{ name, status: 'ok', message }, ...(await examine(config, explain))];
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const message = `${error.message} Correct it, then run \`${programName()} config check\`.`;
    return [{ name, status: 'problem', message }];
  }
}

const colours = { ok: 'green', warning: 'yellow', problem: 'red' } as const;

/** `styleText` leaves out the colours if the output is not a terminal, or NO_COLOR is set. */
const toLine = ({ name, status, message }: Check) =>
  `${styleText(colours[status], status.padEnd(8))} ${name.padEnd(14)} ${wrapText(toPrintable(message), 24)}`;
