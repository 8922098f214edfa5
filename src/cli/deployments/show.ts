// millrace deployments list, show and logs.

import { listCommand, viewCommand } from '#cli/noun.ts';
import { toFacts } from '#cli/output.ts';
import { nameProgram } from '#cli/program-name.ts';
import type { CostView, DeploymentView } from '#deployments/ground/schema.ts';
import type { ReplicaStats } from '#deployments/stats/schema.ts';
import { toFailedPart } from '#lib/text/deployment-failure.ts';
import { toEmptyLogText } from '#lib/text/deployment-log-text.ts';
import { toCount, toDuration, toMoney, toRate, toTokenPrice } from '#lib/text/format.ts';
import { toLadderText } from '#lib/text/ladder-text.ts';
import { toTimeText } from '#lib/text/schedule-text.ts';
import { toWeightsText } from '#lib/text/weights-text.ts';
import { deployments, readableDeployments, toPath } from './find.ts';
import { explainMissing, renderReplicas } from './replicas.ts';

export const listDeployments = () =>
  listCommand(readableDeployments, {
    description: 'List deployments with their state and load',
    columns: {
      NAME: ({ name }) => name,
      MODEL: ({ model }) => model,
      ENGINE: ({ engine }) => engine,
      STATUS: ({ status }) => status,
      REPLICAS: ({ replicas, max }) =>
        `${replicas.filter(({ state }) => state === 'ready').length} of ${max}`,
      RUNNING: ({ running }) => String(running),
      WAITING: ({ waiting }) => String(waiting),
    },
  });

export const showCommand = () =>
  viewCommand(
    readableDeployments,
    'show',
    'Show a deployment, its replicas, and what they use',
    async (deployment, client) => {
      const path = toPath(deployment);
      const { data: cost } = await client.get<{ data: CostView }>(`${path}/cost`);
      const { data: stats } = await client.get<{ data: ReplicaStats[] }>(`${path}/stats`);
      const replicas = deployment.replicas.length === 0 ? [] : [renderReplicas(deployment, stats)];
      return {
        data: { ...deployment, cost, stats },
        text: [render(deployment, cost), ...replicas].join('\n\n'),
        notes: () => [...explainMissing(deployment, stats), ...toNextStep(deployment)],
      };
    },
  );

export const logsCommand = () =>
  viewCommand(
    deployments,
    'logs',
    'Print the last lines that the engine printed',
    async (deployment, client) => {
      const path = `${toPath(deployment)}/log`;
      const { data } = await client.get<{ data: { lines: string[] } }>(path);
      return { data, text: data.lines.join('\n') || toEmptyLogText(deployment) };
    },
  );

function render(one: DeploymentView, cost: CostView): string {
  const weights = toWeightsText(one);
  return toFacts([
    ['Name', one.name],
    ['Model', one.model],
    ['Engine', one.engine],
    ...(weights === null ? [] : [['Weights', weights] as const]),
    ['Runs on', one.runs_on === 'host' ? 'the server’s computer' : one.runs_on],
    ['Status', toStatus(one)],
    ['Revision', String(one.revision)],
    ...(one.in_file ? [['Settings', 'from the configuration file'] as const] : []),
    ['Replicas', `${one.min} to ${one.max}, ${one.target} requests each`],
    ...one.schedule.map((window) => ['Schedule', toTimeText(window)] as const),
    ['When idle', toLadderText(one.ladder)],
    ['Requests', `${one.running} running, ${one.waiting} waiting`],
    ['Speed', toSpeed(cost)],
    ['Served', `${toCount(cost.tokens)} tokens since ${cost.since.slice(0, 10)}`],
    [
      'Ran',
      `${toDuration(cost.engine_seconds * 1_000)}, and ${toDuration(cost.idle_hours * 3_600_000)} without any replica`,
    ],
    ...toPrice(cost),
  ]);
}

function toStatus(deployment: DeploymentView): string {
  const { status, reason } = deployment;
  if (reason === null) return status;
  return status === 'ready'
    ? `ready, but ${toFailedPart(deployment)}: ${reason}`
    : `${status}: ${reason}`;
}

/** What a person does about a deployment that serves nothing. */
function toNextStep({ name, status }: DeploymentView): string[] {
  if (status === 'failed')
    return [nameProgram(`See \`millrace deployments logs ${name}\` for what the engine printed.`)];
  if (status === 'stopped')
    return [nameProgram(`Start it again with \`millrace deployments start ${name}\`.`)];
  return [];
}

function toSpeed({ tokens_per_second, first_token_ms }: CostView): string {
  if (tokens_per_second === 0) return 'no tokens in the last five minutes';
  const first =
    first_token_ms === null ? '' : `, in streams the first after ${toDuration(first_token_ms)}`;
  return `${toRate(tokens_per_second)} tokens/s in the last five minutes${first}`;
}

/** Nothing if replicas run on the server's own computer. */
function toPrice(cost: CostView): [string, string][] {
  const { machine_dollars, dollars_per_million_tokens, saved_dollars } = cost;
  if (machine_dollars + saved_dollars === 0) return [];
  const perToken =
    dollars_per_million_tokens === null ? '' : `, ${toTokenPrice(dollars_per_million_tokens)}`;
  return [
    ['Cost', `${toMoney(machine_dollars)}${perToken}`],
    ['Saved', `${toMoney(saved_dollars)} in the time without any replica`],
  ];
}
