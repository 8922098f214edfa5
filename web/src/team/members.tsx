// Who belongs to the account. Owners change roles and remove people.

import { Badge, Button, Group, Select, Text } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { get, type List, patch, remove } from '../api.ts';
import { ConfirmDialog } from '../components/confirm-dialog.tsx';
import { type Column, DataTable } from '../components/data-table.tsx';
import { ErrorNotice } from '../components/error-notice.tsx';
import { RelativeTime } from '../components/relative-time.tsx';
import { type Member, meKey, type Role, roles, useMe } from '../current-user.ts';

const queryKey = ['members'];

export function Members() {
  const me = useMe();
  const client = useQueryClient();
  const [removing, setRemoving] = useState<Member | null>(null);
  const members = useQuery({
    queryKey,
    queryFn: () => get<List<Member>>('/dashboard/api/members'),
  });
  // An owner may have changed or removed themselves.
  const refresh = () =>
    Promise.all([
      client.invalidateQueries({ queryKey }),
      client.invalidateQueries({ queryKey: meKey }),
    ]);
  const setRole = useMutation({
    mutationFn: ({ id, role }: { id: string; role: Role }) =>
      patch(`/dashboard/api/members/${id}`, { role }),
    onSuccess: refresh,
  });

  async function removeMember({ id, email }: Member) {
    await remove(`/dashboard/api/members/${id}`);
    await refresh();
    notifications.show({ message: `${email} is no longer a member.` });
  }

  const columns: Column<Member>[] = [
    {
      name: 'E-mail',
      cell: ({ id, email }) => (
        <Group gap="xs">
          <Text size="sm" className="breakable">
            {email}
          </Text>
          {id === me.id && (
            <Badge variant="default" tt="none">
              you
            </Badge>
          )}
        </Group>
      ),
    },
    {
      name: 'Role',
      cell: ({ id, email, role }) =>
        me.canManage ? (
          <Select
            aria-label={`Role of ${email}`}
            data={[...roles]}
            value={role}
            onChange={(value) => value && setRole.mutate({ id, role: value as Role })}
            allowDeselect={false}
            disabled={setRole.isPending}
            size="xs"
            w={110}
          />
        ) : (
          role
        ),
    },
    { name: 'Joined', cell: ({ joined_at }) => <RelativeTime at={joined_at} /> },
  ];
  if (me.canManage) {
    columns.push({
      name: '',
      cell: (member) => (
        <Button
          variant="default"
          size="xs"
          onClick={() => setRemoving(member)}
          aria-label={`Remove ${member.email}`}
        >
          Remove
        </Button>
      ),
    });
  }

  return (
    <>
      <ErrorNotice error={setRole.error} />
      <DataTable
        label="People"
        query={members}
        likely={1}
        rows={members.data?.data}
        columns={columns}
        empty={null}
      />
      {removing && (
        <ConfirmDialog
          title={`Remove ${removing.email}?`}
          action="Remove"
          onConfirm={() => removeMember(removing)}
          onClose={() => setRemoving(null)}
        >
          They are signed out at once. Keys they made belong to the account and go on working.
        </ConfirmDialog>
      )}
    </>
  );
}
