// Invitation links. A link is shown once, to the owner who creates it.

import { Button, Group, Radio, Stack, Text } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { post } from '../api.ts';
import { SecretField } from '../components/copy-button.tsx';
import { DataTable } from '../components/data-table.tsx';
import { ErrorNotice } from '../components/error-notice.tsx';
import { LoadMore } from '../components/filters.tsx';
import { RelativeTime } from '../components/relative-time.tsx';
import { useDelete } from '../components/use-delete.tsx';
import { type Invitation, type Role, roleAbility, roleName, roles } from '../current-user.ts';
import { usePagedList } from '../queries.ts';

const queryKey = ['invitations'];
const path = '/dashboard/api/invitations';

export function Invitations() {
  const client = useQueryClient();
  const [role, setRole] = useState<Role>('member');
  const invitations = usePagedList<Invitation>('invitations', path);
  const invite = useMutation({
    mutationFn: () => post<Invitation>(path, { role }),
    onSuccess: () => client.invalidateQueries({ queryKey }),
  });
  const revocation = useDelete<Invitation>({
    action: 'Revoke',
    nameOf: (invitation) => `the invitation for a new ${invitation.role}`,
    title: () => 'Revoke this invitation?',
    warning: () => 'Its link stops working immediately.',
    pathOf: ({ id }) => `${path}/${id}`,
    queryKeys: [queryKey],
    onDeleted: ({ id }) => invite.data?.id === id && invite.reset(),
  });
  return (
    <Stack gap="md">
      <Radio.Group label="Role" value={role} onChange={(value) => setRole(value as Role)}>
        <Stack gap={6} mt={6}>
          {roles.map((value) => (
            <Radio
              key={value}
              value={value}
              label={roleName[value]}
              description={`Can ${roleAbility[value]}.`}
            />
          ))}
        </Stack>
      </Radio.Group>
      <Group>
        <Button onClick={() => invite.mutate()} loading={invite.isPending}>
          Create invitation link
        </Button>
      </Group>
      <ErrorNotice error={invite.error} />
      {invite.data?.link && (
        <SecretField
          label={`Invitation link for a new ${invite.data.role} (shown only once)`}
          value={invite.data.link}
        />
      )}
      <DataTable
        label="Open invitations"
        name="invitations-"
        query={invitations}
        skeletonRows={1}
        rows={invitations.data}
        columns={[
          {
            name: 'Role',
            value: (invitation) => invitation.role,
            cell: (invitation) => roleName[invitation.role],
          },
          {
            name: 'Expires',
            value: ({ expires_at }) => expires_at,
            cell: ({ expires_at }) => <RelativeTime at={expires_at} />,
          },
          revocation.column,
        ]}
        empty={
          <Text size="sm" c="dimmed">
            No open invitations.
          </Text>
        }
      />
      <LoadMore query={invitations} />
      {revocation.dialog}
    </Stack>
  );
}
