// Shared filesystems: kept when machines end, and mounted by several at once.

import { Button, Code, Text } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { Link, useLocation } from 'wouter';
import type { Filesystem } from '../../../src/cloud/schema.ts';
import { useMe } from '../account.ts';
import { get, type List, remove } from '../api.ts';
import { toSize } from '../parts/bytes.ts';
import { Confirm } from '../parts/confirm.tsx';
import { Page } from '../parts/page.tsx';
import { type Column, Empty, Records } from '../parts/records.tsx';
import { When } from '../parts/when.tsx';
import { NewFilesystemDialog } from './new-filesystem.tsx';

const queryKey = ['filesystems'];

export default function Filesystems() {
  const { canUse } = useMe();
  const client = useQueryClient();
  const [location, navigate] = useLocation();
  const [deleting, setDeleting] = useState<Filesystem | null>(null);
  const filesystems = useQuery({
    queryKey,
    queryFn: () => get<List<Filesystem>>('/api/v1/file-systems'),
  });
  const refresh = () => client.invalidateQueries({ queryKey });

  async function deleteFilesystem({ id, name }: Filesystem) {
    await remove(`/api/v1/filesystems/${id}`);
    await refresh();
    notifications.show({ message: `The filesystem “${name}” is deleted.` });
  }

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
  if (canUse) {
    columns.push({
      name: '',
      cell: (filesystem) => <Delete filesystem={filesystem} onDelete={setDeleting} />,
    });
  }

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
      {deleting && (
        <Confirm
          title={`Delete “${deleting.name}”?`}
          action="Delete"
          onConfirm={() => deleteFilesystem(deleting)}
          onClose={() => setDeleting(null)}
        >
          All files on it are gone for good.
        </Confirm>
      )}
    </Page>
  );
}

interface DeleteProps {
  filesystem: Filesystem;
  onDelete: (filesystem: Filesystem) => void;
}

function Delete({ filesystem, onDelete }: DeleteProps) {
  if (filesystem.is_in_use) {
    return (
      <Text size="xs" c="dimmed">
        in use by a machine
      </Text>
    );
  }
  return (
    <Button
      variant="default"
      size="xs"
      onClick={() => onDelete(filesystem)}
      aria-label={`Delete ${filesystem.name}`}
    >
      Delete
    </Button>
  );
}
