// Shared filesystems: several machines can mount one, and it outlives them.

import { Button, Code } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { Link, useLocation } from 'wouter';
import type { Filesystem } from '#cloud/schema.ts';
import { toSize } from '#lib/text/format.ts';
import { type Column, DataTable, NameCell } from '../components/data-table.tsx';
import { EmptyState } from '../components/empty-state.tsx';
import { Page } from '../components/page.tsx';
import { RelativeTime } from '../components/relative-time.tsx';
import { useDelete } from '../components/use-delete.tsx';
import { useMe } from '../current-user.ts';
import { filesystemsKey, useFilesystems } from '../queries.ts';
import { CreateFilesystemDialog } from './create-filesystem-dialog.tsx';

export default function Filesystems() {
  const { canUse } = useMe();
  const client = useQueryClient();
  const [location, navigate] = useLocation();
  const filesystems = useFilesystems();
  const deletion = useDelete<Filesystem>({
    nameOf: ({ name }) => name,
    warning: () => 'All files on it are permanently deleted.',
    pathOf: ({ id }) => `/api/v1/filesystems/${id}`,
    queryKeys: [filesystemsKey],
    doneMessage: ({ name }) => `Filesystem “${name}” deleted.`,
    blockedReason: ({ is_in_use }) => (is_in_use ? 'In use by a machine' : null),
  });
  const create = canUse && (
    <Button component={Link} href="/filesystems/new">
      Create filesystem
    </Button>
  );
  return (
    <Page
      title="Filesystems"
      description="Storage that outlives machines. A machine mounts the filesystems that are selected at launch."
      actions={filesystems.data?.data.length !== 0 && create}
    >
      <DataTable
        label="Filesystems"
        query={filesystems}
        rows={filesystems.data?.data}
        columns={canUse ? [...columns, deletion.column] : columns}
        empty={
          <EmptyState
            title="No filesystems yet"
            art="disk"
            action={create}
            command="millrace filesystems create datasets us-west-1"
          >
            A machine’s own disk is deleted with the machine. Keep datasets and results on a
            filesystem and select it at launch: all machines that mount it see the same files.
          </EmptyState>
        }
      />
      {canUse && location === '/filesystems/new' && (
        <CreateFilesystemDialog
          onCreated={() => client.invalidateQueries({ queryKey: filesystemsKey })}
          onClose={() => navigate('/filesystems')}
        />
      )}
      {deletion.dialog}
    </Page>
  );
}

const columns: Column<Filesystem>[] = [
  { name: 'Name', value: ({ name }) => name, cell: ({ name }) => <NameCell name={name} /> },
  {
    name: 'Mount point',
    value: ({ mount_point }) => mount_point,
    cell: ({ mount_point }) => <Code className="breakable">{mount_point}</Code>,
  },
  {
    name: 'Region',
    filter: true,
    value: ({ region }) => region.name,
    cell: ({ region }) => region.name,
  },
  {
    name: 'Used',
    isNumber: true,
    value: ({ bytes_used }) => bytes_used ?? null,
    cell: ({ bytes_used }) => (bytes_used === undefined ? 'Unknown' : toSize(bytes_used)),
  },
  {
    name: 'Created',
    value: ({ created }) => created,
    cell: ({ created }) => <RelativeTime at={created} />,
  },
];
