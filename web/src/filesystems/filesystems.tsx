// Shared filesystems: kept when machines end, and mounted by several at once.

import { Button, Code, Text } from '@mantine/core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { Link, useLocation } from 'wouter';
import type { Filesystem } from '#cloud/schema.ts';
import { get, type List, remove } from '../api.ts';
import { type Column, DataTable, EmptyState } from '../components/data-table.tsx';
import { Page } from '../components/page.tsx';
import { RelativeTime } from '../components/relative-time.tsx';
import { useDelete } from '../components/use-delete.tsx';
import { useMe } from '../current-user.ts';
import { toSize } from '../format/bytes.ts';
import { CreateFilesystemDialog } from './create-filesystem-dialog.tsx';

const queryKey = ['filesystems'];

export default function Filesystems() {
  const { canUse } = useMe();
  const client = useQueryClient();
  const [location, navigate] = useLocation();
  const filesystems = useQuery({
    queryKey,
    queryFn: () => get<List<Filesystem>>('/api/v1/file-systems'),
  });
  const refresh = () => client.invalidateQueries({ queryKey });

  const removal = useDelete<Filesystem>({
    action: 'Delete',
    nameOf: ({ name }) => name,
    warning: () => 'All files on it are gone for good.',
    async onRemove({ id }) {
      await remove(`/api/v1/filesystems/${id}`);
      await refresh();
    },
    done: ({ name }) => `The filesystem “${name}” is deleted.`,
    reasonToStay: ({ is_in_use }) => (is_in_use ? 'in use by a machine' : null),
  });

  const create = (
    <Button component={Link} href="/filesystems/new">
      Make a filesystem
    </Button>
  );
  const columns: Column<Filesystem>[] = [
    {
      name: 'Name',
      cell: ({ name }) => (
        <Text size="sm" fw={500} className="breakable">
          {name}
        </Text>
      ),
    },
    {
      name: 'Mounted at',
      cell: ({ mount_point }) => <Code className="breakable">{mount_point}</Code>,
    },
    { name: 'Region', cell: ({ region }) => region.name },
    {
      name: 'Used',
      cell: ({ bytes_used }) => (bytes_used === undefined ? 'not known' : toSize(bytes_used)),
    },
    { name: 'Made', cell: ({ created }) => <RelativeTime at={created} /> },
  ];
  if (canUse) columns.push(removal.column);

  return (
    <Page
      title="Filesystems"
      description="Files that outlive machines. A machine mounts those that were chosen when it was launched."
      actions={canUse && filesystems.data?.data.length !== 0 && create}
    >
      <DataTable
        label="Filesystems"
        query={filesystems}
        rows={filesystems.data?.data}
        columns={columns}
        empty={
          <EmptyState title="No filesystems yet" action={canUse && create}>
            A machine’s own disk goes with the machine. Put data sets and results on a filesystem,
            and choose it when you launch: every machine that has it sees the same files.
          </EmptyState>
        }
      />
      {canUse && location === '/filesystems/new' && (
        <CreateFilesystemDialog onMade={refresh} onClose={() => navigate('/filesystems')} />
      )}
      {removal.dialog}
    </Page>
  );
}
