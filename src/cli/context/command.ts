// millrace context: names for several servers, each with its own sign-in or API key. Tokens and keys are never printed.

import { Command } from 'commander';
import {
  defaultContext,
  getContext,
  loadContexts,
  loadCredentials,
  saveContexts,
} from '#cli/credentials.ts';
import { nounCommand } from '#cli/noun.ts';
import { report, toTable } from '#cli/output.ts';
import { confirm } from '#cli/prompts.ts';
import { addView, type View } from '#cli/view.ts';
import { addCommand } from './add.ts';

const argument = ['<name>', 'Name, from `millrace context list`'] as const;

export const contextCommand = (): Command =>
  nounCommand('context', 'Name several servers, and choose the one that commands talk to', [
    addView(new Command('list').description('List contexts; * marks the one in use'), list),
    addCommand(),
    new Command('use')
      .description('Make commands talk to this server from now on')
      .argument(...argument)
      .option('--json', 'Print JSON')
      .action(use),
    new Command('remove')
      .description('Forget a server with its sign-in and API key; the server keeps both')
      .argument(...argument)
      .option('--yes', 'Do not ask for confirmation')
      .option('--json', 'Print JSON')
      .action(remove),
  ]);

async function list(): Promise<View> {
  const { context: used } = loadCredentials();
  const data = Object.entries(loadContexts().all).map(([name, context]) => ({
    name,
    url: context.url,
    current: name === used,
    signed_in: context.session !== null,
    has_api_key: context.apiKey !== null,
  }));
  const text = toTable('contexts', data, {
    '': ({ current }) => (current ? '*' : ''),
    NAME: ({ name }) => name,
    SERVER: ({ url }) => url,
    ACCESS: ({ signed_in, has_api_key }) =>
      [...(signed_in ? ['sign-in'] : []), ...(has_api_key ? ['API key'] : [])].join(', ') || '-',
  });
  return { data, text };
}

function use(name: string, { json }: { json?: true }): void {
  const { all } = loadContexts();
  const { url } = getContext(all, name);
  saveContexts({ current: name, all });
  report({ name, url }, `Commands now talk to ${url} (${name}).`, json);
}

/** Forgets a server and what gives access to it on this computer. */
async function remove(name: string, { yes, json }: { yes?: true; json?: true }): Promise<void> {
  const { current, all } = loadContexts();
  const { url } = getContext(all, name);
  await confirm(`Forget context ${name} (${url}) and its credentials?`, yes);
  const { [name]: _removed, ...others } = all;
  saveContexts({ current: current === name ? defaultContext : current, all: others });
  report({ name, url }, `Removed context ${name}.`, json);
}
