// millrace context use: chooses the server of later commands.

import { Command } from 'commander';
import { getContext, loadContexts, saveContexts } from '#cli/credentials.ts';
import { report } from '#cli/output.ts';

export function chooseCommand(): Command {
  return new Command('use')
    .description('Make commands talk to this server from now on')
    .argument('<name>', 'Name, from `millrace context list`')
    .option('--json', 'Print JSON')
    .action((name: string, { json }: { json?: true }) => {
      const { all } = loadContexts();
      const { url } = getContext(all, name);
      saveContexts({ current: name, all });
      report({ name, url }, `Commands now talk to ${url} (${name}).`, json);
    });
}
