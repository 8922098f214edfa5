// millrace deployments update, scale, rollback, stop, start and remove.

import { Command, InvalidArgumentError } from 'commander';
import { createClient } from '#cli/client.ts';
import { changeCommand, getItem } from '#cli/noun.ts';
import { CliError, report } from '#cli/output.ts';
import type { DeploymentChange, DeploymentView } from '#deployments/ground/schema.ts';
import { deployments, toPath } from './find.ts';
import { type DeploymentOptions, toChange, withDeploymentOptions } from './options.ts';

interface JsonOption {
  json?: true;
}

export function updateCommand(): Command {
  return withDeploymentOptions(new Command('update'))
    .description('Change a deployment; a new engine takes over once it answers')
    .argument(...deployments.argument)
    .option('--no-source', 'Return to the default source')
    .option('--no-program', 'Return to the default program')
    .option('--no-schedule', 'Remove all times of the schedule')
    .option('--json', 'Print JSON')
    .action(async (wanted: string, { json, ...options }: DeploymentOptions & JsonOption) => {
      const body = toChange(options);
      if (Object.keys(body).length === 0) throw new CliError('Name at least one change.');
      await change(wanted, body, json, ({ name, revision }, before) =>
        revision > before.revision
          ? `${name} has revision ${revision}. It takes over once it answers.`
          : `${name} is changed.`,
      );
    });
}

export function scaleCommand(): Command {
  return new Command('scale')
    .description('Set the smallest and the largest number of replicas')
    .argument(...deployments.argument)
    .argument('<min>', 'Replicas that always run', toCount)
    .argument('<max>', 'Maximum number of replicas', toCount)
    .option('--json', 'Print JSON')
    .action((wanted: string, min: number, max: number, { json }: JsonOption) => {
      if (min > max) throw new CliError(`min must be at most max, which is ${max}, got ${min}.`);
      const toText = ({ name }: DeploymentView) => `${name} has ${min} to ${max} replicas.`;
      return change(wanted, { min, max }, json, toText);
    });
}

const actions = [
  ['rollback', 'Return to the settings before the last change', () => 'is being rolled back.'],
  [
    'stop',
    'Stop all replicas; running requests finish',
    () => 'stops once its requests have ended.',
  ],
  [
    'start',
    'Start a deployment again that is stopped or has failed',
    (min: number) => (min > 0 ? 'starts.' : 'starts with the next request.'),
  ],
] as const;

export const actionCommands = (): Command[] =>
  actions.map(([action, description, toResult]) =>
    changeCommand(deployments, action, {
      description,
      async run(client, deployment) {
        const path = `${toPath(deployment)}/${action}`;
        const { data } = await client.post<{ data: DeploymentView }>(path, {});
        return { data, text: `${data.name} ${toResult(data.min)}` };
      },
    }),
  );

export const removeCommand = (): Command =>
  changeCommand(deployments, 'remove', {
    description: 'Remove a deployment; its running requests finish first',
    question: ({ name }) => `Remove deployment ${name}?`,
    async run(client, deployment) {
      await client.delete(toPath(deployment));
      const { name } = deployment;
      return { data: { name }, text: `${name} is removed once its running requests finish.` };
    },
  });

/** Called once the options are checked, so that a mistake in them costs no request. */
async function change(
  wanted: string,
  body: DeploymentChange,
  json: true | undefined,
  toText: (deployment: DeploymentView, before: DeploymentView) => string,
): Promise<void> {
  const client = createClient('session');
  const before = await getItem(deployments, client, wanted);
  const { data } = await client.post<{ data: DeploymentView }>(toPath(before), body);
  report(data, toText(data, before), json);
}

function toCount(text: string): number {
  if (!/^\d{1,3}$/.test(text)) throw new InvalidArgumentError('Give a number.');
  return Number(text);
}
