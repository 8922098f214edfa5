// millrace instances restart and terminate, each for several instances at once.

import { Command } from 'commander';
import { type Client, createClient } from '#cli/client.ts';
import { findOnly } from '#cli/find.ts';
import { report } from '#cli/output.ts';
import { confirm } from '#cli/prompts.ts';
import type { Instance } from '#cloud/schema.ts';
import { instances } from './find.ts';

const argument = ['<instance...>', 'Ids, their first characters, or names'] as const;

export const restartCommand = (): Command =>
  new Command('restart')
    .description('Restart instances; they keep their disks and addresses')
    .argument(...argument)
    .option('--hard', 'Power-cycle them instead of a clean restart')
    .option('--json', 'Print JSON')
    .action(async (wanted: string[], { hard, json }: { hard?: true; json?: true }) => {
      const client = createClient('any');
      const chosen = await choose(client, wanted);
      await operate(client, hard ? 'power-cycle' : 'restart', chosen);
      reportEach(chosen, 'Restarting', json);
    });

export const terminateCommand = (): Command =>
  new Command('terminate')
    .description('Terminate instances and delete their disks; filesystems are kept')
    .argument(...argument)
    .option('--yes', 'Do not ask for confirmation')
    .option('--json', 'Print JSON')
    .action(async (wanted: string[], { yes, json }: { yes?: true; json?: true }) => {
      const client = createClient('any');
      const chosen = await choose(client, wanted);
      const names = chosen.map(({ id, name }) => (name ? `${name} (${id})` : id)).join(', ');
      await confirm(`Terminate ${names}? The data on the disks is lost.`, yes);
      await operate(client, 'terminate', chosen);
      reportEach(chosen, 'Terminating', json);
    });

async function choose(client: Client, wanted: readonly string[]): Promise<Instance[]> {
  const all = await instances.read(client);
  return wanted.map((one) => findOnly(all, one, instances));
}

const operate = (client: Client, operation: string, chosen: readonly Instance[]) =>
  client.post(`/api/v1/instance-operations/${operation}`, {
    instance_ids: chosen.map(({ id }) => id),
  });

const reportEach = (chosen: readonly Instance[], what: string, json: true | undefined) =>
  report(
    chosen.map(({ id }) => ({ id })),
    chosen.map(({ id }) => `${what} ${id}.`).join('\n'),
    json,
  );
