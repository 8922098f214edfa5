// Shared filesystems: kept when machines end, and mounted by several at once.

import { Button, Code, Text } from '@mantine/core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { Link, useLocation } from 'wouter';
import type { Filesystem } from '../../../src/cloud/schema.ts';
import { useMe } from '../account.ts';
import { get, type List, remove } from '../api.ts';
import { toSize } from '../parts/bytes.ts';
import { Page } from '../parts/page.tsx';
import { type Column, Empty, Records } from '../parts/records.tsx';
import { useRemoval } from '../parts/removal.tsx';
import { When } from '../parts/when.tsx';
import { NewFilesystemDialog } from './new-filesystem.tsx';

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

  const removal = useRemoval<Filesystem>({
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
    { name: 'Made', cell: ({ created }) => <When at={created} /> },
  ];
  if (canUse) columns.push(removal.column);

  return (
    <Page
      title="Filesystems"
      description="Files that outlive machines. A machine mounts those that were chosen when it was launched."
      actions={canUse && filesystems.data?.data.length !== 0 && create}
    >
      <Records
        label="Filesystems"
        query={filesystems}
        rows={filesystems.data?.data}
        columns={columns}
        empty={
          <Empty title="No filesystems yet" action={canUse && create}>
            A machine’s own disk goes with the machine. Put data sets and results on a filesystem,
            and choose it when you launch: every machine that has it sees the same files.
          </Empty>
        }
      />
      {canUse && location === '/filesystems/new' && (
        <NewFilesystemDialog onMade={refresh} onClose={() => navigate('/filesystems')} />
      )}
      {removal.dialog}
    </Page>
  );
}
