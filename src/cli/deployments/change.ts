// millrace deployments update, scale, rollback, stop, start and remove.

import { Command, InvalidArgumentError } from 'commander';
import { createClient } from '#cli/client.ts';
import { CliError, report } from '#cli/output.ts';
import { confirm } from '#cli/prompts.ts';
import type { DeploymentChange, DeploymentView } from '#deployments/schema.ts';
import { deploymentArgument, getDeployment, toPath } from './find.ts';
import { type DeploymentOptions, toChange, withDeploymentOptions } from './options.ts';

interface JsonOption {
  json?: true;
}

export function updateCommand(): Command {
  return withDeploymentOptions(new Command('update'))
    .description('Change a deployment; a new engine takes over once it answers')
    .argument(...deploymentArgument)
    .option('--no-source', 'Return to the default source')
    .option('--no-program', 'Return to the default program')
    .option('--no-schedule', 'Remove all times of the schedule')
    .option('--json', 'Print JSON')
    .action(async (wanted: string, { json, ...options }: DeploymentOptions & JsonOption) => {
      const change = toChange(options);
      if (Object.keys(change).length === 0) throw new CliError('Name at least one change.');
      await post(wanted, '', change, json, ({ name, revision }, before) =>
        revision > before.revision
          ? `${name} has revision ${revision}. It takes over once it answers.`
          : `${name} is changed.`,
      );
    });
}

export function scaleCommand(): Command {
  return new Command('scale')
    .description('Set the smallest and the largest number of replicas')
    .argument(...deploymentArgument)
    .argument('<min>', 'Replicas that always run', toCount)
    .argument('<max>', 'Maximum number of replicas', toCount)
    .option('--json', 'Print JSON')
    .action((wanted: string, min: number, max: number, { json }: JsonOption) => {
      if (min > max) throw new CliError(`min must be at most max, which is ${max}, got ${min}.`);
      return post(wanted, '', { min, max }, json, ({ name }) => {
        return `${name} has ${min} to ${max} replicas.`;
      });
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
    new Command(action)
      .description(description)
      .argument(...deploymentArgument)
      .option('--json', 'Print JSON')
      .action((wanted: string, { json }: JsonOption) =>
        post(wanted, `/${action}`, {}, json, ({ name, min }) => `${name} ${toResult(min)}`),
      ),
  );

export function removeCommand(): Command {
  return new Command('remove')
    .description('Remove a deployment; its running requests finish first')
    .argument(...deploymentArgument)
    .option('--yes', 'Do not ask for confirmation')
    .option('--json', 'Print JSON')
    .action(async (wanted: string, { yes, json }: JsonOption & { yes?: true }) => {
      const client = createClient('session');
      const deployment = await getDeployment(client, wanted);
      const { name } = deployment;
      await confirm(`Remove deployment ${name}?`, yes);
      await client.delete(toPath(deployment));
      report({ name }, `${name} is removed once its running requests finish.`, json);
    });
}

async function post(
  wanted: string,
  action: string,
  body: DeploymentChange,
  json: true | undefined,
  toText: (deployment: DeploymentView, before: DeploymentView) => string,
): Promise<void> {
  const client = createClient('session');
  const before = await getDeployment(client, wanted);
  const path = `${toPath(before)}${action}`;
  const { data } = await client.post<{ data: DeploymentView }>(path, body);
  report(data, toText(data, before), json);
}

function toCount(text: string): number {
  if (!/^\d{1,3}$/.test(text)) throw new InvalidArgumentError('Give a number.');
  return Number(text);
}
