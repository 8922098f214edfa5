// Finds a deployment by its name, its id, or the first characters of its id.

import type { Client } from '#cli/client.ts';
import { findOnly } from '#cli/find.ts';
import type { DeploymentView } from '#deployments/schema.ts';

export const deploymentArgument = [
  '<deployment>',
  'Name, id, or the first characters of the id, from `millrace deployments list`',
] as const;

export const deploymentsPath = '/api/v1/deployments';

export const toPath = ({ name }: DeploymentView) =>
  `${deploymentsPath}/${encodeURIComponent(name)}`;

export const listDeployments = async (client: Client) =>
  (await client.get<{ data: DeploymentView[] }>(deploymentsPath)).data;

export const getDeployment = async (client: Client, wanted: string) =>
  findOnly(await listDeployments(client), wanted, {
    noun: 'deployment',
    command: 'millrace deployments list',
    namesOf: ({ name }) => [name],
  });
