// millrace context add: names a server. `login --context` signs in to it, or an API key is read from a file.

import { Command } from 'commander';
import { checkName, isAddress, loadContexts, saveContext, toAddress } from '#cli/credentials.ts';
import { CliError, report } from '#cli/output.ts';
import { nameProgram } from '#cli/program-name.ts';
import { readSecret } from '#cli/secret-file.ts';

interface Options {
  apiKeyFile?: string;
  force?: true;
  json?: true;
}

export function addCommand(): Command {
  return new Command('add')
    .description('Name a server')
    .argument('<name>', 'Name, e.g. production')
    .argument('<url>', 'Address of the server, e.g. https://millrace.example.com')
    .option('--api-key-file <file>', 'File with an API key of the server; - reads standard input')
    .option('--force', 'Replace the context of this name, and forget its sign-in')
    .option('--json', 'Print JSON')
    .addHelpText('after', '\nSign in to it with `millrace login --context <name>`.')
    .action(add);
}

function add(name: string, address: string, { apiKeyFile, force, json }: Options): void {
  const url = toAddress(address);
  checkName(name);
  if (!isAddress(url))
    throw new CliError(
      `${address} is not a URL. Give one such as https://millrace.example.com.`,
      2,
    );
  if (!force && Object.hasOwn(loadContexts().all, name))
    throw new CliError(`There is a context ${name} already. Replace it with --force.`);
  const apiKey = apiKeyFile === undefined ? null : readSecret(apiKeyFile);
  saveContext(name, { url, session: null, device: null, apiKey });
  const next = apiKey === null ? `login --context ${name}` : `context use ${name}`;
  const added = `Added context ${name} for ${url}. Next: \`millrace ${next}\`.`;
  report({ name, url }, nameProgram(added), json);
}
