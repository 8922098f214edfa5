// The account's members. Owners can change roles and remove members.

import { Badge, Group, Select, Text } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { patch } from '../api.ts';
import { type Column, DataTable } from '../components/data-table.tsx';
import { ErrorNotice } from '../components/error-notice.tsx';
import { RelativeTime } from '../components/relative-time.tsx';
import { useDelete } from '../components/use-delete.tsx';
import { type Member, meKey, type Role, roles, useMe } from '../current-user.ts';
import { membersKey, useMembers } from '../queries.ts';

/** Owners can change or remove themselves, so the signed-in user is fetched again as well. */
const queryKeys = [membersKey, meKey];

const toPath = ({ id }: Pick<Member, 'id'>) => `/dashboard/api/members/${id}`;

export function Members() {
  const me = useMe();
  const client = useQueryClient();
  const members = useMembers();
  const setRole = useMutation({
    mutationFn: ({ id, role }: { id: string; role: Role }) => patch(toPath({ id }), { role }),
    onSuccess: () =>
      Promise.all(queryKeys.map((queryKey) => client.invalidateQueries({ queryKey }))),
  });
  const removal = useDelete<Member>({
    action: 'Remove',
    nameOf: ({ email }) => email,
    warning: () =>
      'They are signed out immediately. Keys they created belong to the account and keep working.',
    pathOf: toPath,
    queryKeys,
    doneMessage: ({ email }) => `${email} is no longer a member.`,
  });
  const columns: Column<Member>[] = [
    { name: 'Email', cell: ({ id, email }) => <Email email={email} isMe={id === me.id} /> },
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
  if (me.canManage) columns.push(removal.column);
  return (
    <>
      <ErrorNotice error={setRole.error} />
      <DataTable
        label="People"
        query={members}
        skeletonRows={1}
        rows={members.data?.data}
        columns={columns}
        empty={null}
      />
      {removal.dialog}
    </>
  );
}

const Email = ({ email, isMe }: { email: string; isMe: boolean }) => (
  <Group gap="xs">
    <Text size="sm" className="breakable">
      {email}
    </Text>
    {isMe && (
      <Badge variant="default" tt="none">
        you
      </Badge>
    )}
  </Group>
);
