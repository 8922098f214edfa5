// millrace context remove: forgets a server and what gives access to it on this computer.

import { Command } from 'commander';
import { defaultContext, getContext, loadContexts, saveContexts } from '#cli/credentials.ts';
import { report } from '#cli/output.ts';
import { confirm } from '#cli/prompts.ts';

export function removeCommand(): Command {
  return new Command('remove')
    .description('Forget a server with its sign-in and API key; the server keeps both')
    .argument('<name>', 'Name, from `millrace context list`')
    .option('--yes', 'Do not ask for confirmation')
    .option('--json', 'Print JSON')
    .action(async (name: string, { yes, json }: { yes?: true; json?: true }) => {
      const { current, all } = loadContexts();
      const { url } = getContext(all, name);
      await confirm(`Forget context ${name} (${url}) and its credentials?`, yes);
      const { [name]: _removed, ...others } = all;
      saveContexts({ current: current === name ? defaultContext : current, all: others });
      report({ name, url }, `Removed context ${name}.`, json);
    });
}
