// millrace deployments list, show and logs.

import { Command } from 'commander';
import { createClient } from '#cli/client.ts';
import { toTable } from '#cli/output.ts';
import { addView } from '#cli/view.ts';
import type { DeploymentView } from '#deployments/schema.ts';
import { deploymentArgument, getDeployment, listDeployments, toPath } from './find.ts';

export function listCommand(): Command {
  const command = new Command('list').description('List deployments with their state and load');
  return addView(command, async () => {
    const data = await listDeployments(createClient('any'));
    return { data, text: data.length === 0 ? 'There are no deployments.' : renderList(data) };
  });
}

const renderList = (deployments: readonly DeploymentView[]) =>
  toTable(
    ['NAME', 'MODEL', 'ENGINE', 'STATUS', 'REPLICAS', 'RUNNING', 'WAITING'],
    deployments.map((one) => [
      one.name,
      one.model,
      one.engine,
      one.status,
      `${one.replicas.filter(({ state }) => state === 'ready').length} of ${one.max}`,
      String(one.running),
      String(one.waiting),
    ]),
  );

export function showCommand(): Command {
  const command = new Command('show')
    .description('Show a deployment and its replicas')
    .argument(...deploymentArgument);
  return addView(command, async (wanted: string) => {
    const data = await getDeployment(createClient('any'), wanted);
    return { data, text: render(data) };
  });
}

function render(one: DeploymentView): string {
  const facts: [string, string][] = [
    ['Name', one.name],
    ['Model', one.model],
    ['Engine', one.engine],
    ['Weights', one.source ?? one.model],
    ['Runs on', one.runs_on === 'host' ? 'the server’s computer' : one.runs_on],
    ['Status', one.reason === null ? one.status : `${one.status}: ${one.reason}`],
    ['Revision', String(one.revision)],
    ...(one.in_file ? [['Settings', 'from the configuration file'] as [string, string]] : []),
    ['Replicas', `${one.min} to ${one.max}, ${one.target} requests each`],
    ['Stops after', `${one.idle_seconds} s without need`],
    ['Requests', `${one.running} running, ${one.waiting} waiting`],
  ];
  const width = Math.max(...facts.map(([name]) => name.length)) + 2;
  const lines = facts.map(([name, value]) => `${name.padEnd(width)}${value}`);
  if (one.replicas.length === 0) return lines.join('\n');
  const replicas = toTable(
    ['REPLICA', 'REVISION', 'STATE', 'REQUESTS', 'SINCE'],
    one.replicas.map(({ id, revision, state, progress, requests, ready_at, started_at }) => [
      id.slice(0, 8),
      String(revision),
      progress ?? state,
      String(requests),
      ready_at ?? started_at,
    ]),
  );
  return [...lines, '', replicas].join('\n');
}

export function logsCommand(): Command {
  const command = new Command('logs')
    .description('Print the last lines that the engine printed')
    .argument(...deploymentArgument);
  return addView(command, async (wanted: string) => {
    const client = createClient('session');
    const path = `${toPath(await getDeployment(client, wanted))}/log`;
    const { data } = await client.get<{ data: { lines: string[] } }>(path);
    return { data, text: data.lines.join('\n') };
  });
}
