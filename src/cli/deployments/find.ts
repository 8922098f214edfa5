// Deployments as commands list and find them.

import type { Noun } from '#cli/noun.ts';
import { atOnce } from '#cli/pages.ts';
import type { DeploymentView } from '#deployments/ground/schema.ts';

export const deploymentsPath = '/api/v1/deployments';

export const deployments: Noun<DeploymentView> = {
  noun: 'deployment',
  plural: 'deployments',
  command: 'millrace deployments list',
  needs: 'session',
  argument: [
    '<deployment>',
    'Name, id, or the first characters of the id, from `millrace deployments list`',
  ],
  namesOf: ({ name }) => [name],
  read: atOnce(deploymentsPath),
};

/** For commands that only read, an API key is enough. */
export const readableDeployments: Noun<DeploymentView> = { ...deployments, needs: 'any' };

export const toPath = ({ name }: DeploymentView) =>
  `${deploymentsPath}/${encodeURIComponent(name)}`;
