// Instances as commands list and find them.

import type { Noun } from '#cli/noun.ts';
import { atOnce } from '#cli/pages.ts';
import type { Instance } from '#cloud/schema.ts';

export const instances: Noun<Instance> = {
  noun: 'instance',
  plural: 'instances',
  command: 'millrace instances list',
  needs: 'any',
  argument: ['<instance>', 'Id, its first characters, or name'],
  namesOf: ({ name }) => [name],
  read: atOnce('/api/v1/instances'),
};
