// millrace filesystems: storage that outlives instances.

import type { Command } from 'commander';
import { changeCommand, listCommand, type Noun, nounCommand } from '#cli/noun.ts';
import { atOnce } from '#cli/pages.ts';
import type { Filesystem } from '#cloud/schema.ts';
import { toSize } from '#lib/text/format.ts';
import { createCommand } from './create.ts';

export const filesystems: Noun<Filesystem> = {
  noun: 'filesystem',
  plural: 'filesystems',
  command: 'millrace filesystems list',
  needs: 'any',
  argument: ['<filesystem>', 'Id, its first characters, or name'],
  namesOf: ({ name }) => [name],
  read: atOnce('/api/v1/file-systems'),
};

export const filesystemsCommand = (): Command =>
  nounCommand('filesystems', 'Create, list and delete filesystems', [
    createCommand(),
    listCommand(filesystems, {
      description: 'List filesystems',
      columns: {
        ID: ({ id }) => id,
        NAME: ({ name }) => name,
        REGION: ({ region }) => region.name,
        'MOUNT POINT': ({ mount_point }) => mount_point,
        USED: ({ bytes_used }) => (bytes_used == null ? '-' : toSize(bytes_used)),
        'IN USE': ({ is_in_use }) => (is_in_use ? 'yes' : 'no'),
      },
    }),
    changeCommand(filesystems, 'delete', {
      description: 'Delete a filesystem and everything in it',
      question: ({ name }) => `Delete filesystem ${name} and everything in it?`,
      async run(client, { id, name }) {
        await client.delete(`/api/v1/filesystems/${id}`);
        return { data: { id, name }, text: `Deleted filesystem ${name}.` };
      },
    }),
  ]);
