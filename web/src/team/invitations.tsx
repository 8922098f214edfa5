// Links that let somebody join. A link is shown once, to the owner who made it.

import { Button, Group, Radio, Stack, Text } from '@mantine/core';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { get, type List, post, remove } from '../api.ts';
import { ConfirmDialog } from '../components/confirm-dialog.tsx';
import { SecretField } from '../components/copy-button.tsx';
import { DataTable } from '../components/data-table.tsx';
import { ErrorNotice } from '../components/error-notice.tsx';
import { RelativeTime } from '../components/relative-time.tsx';
import { type Invitation, type Role, roleMeaning, roles } from '../current-user.ts';

const queryKey = ['invitations'];

export function Invitations() {
  const client = useQueryClient();
  const [role, setRole] = useState<Role>('member');
  const [revoking, setRevoking] = useState<Invitation | null>(null);
  const invitations = useQuery({
    queryKey,
    queryFn: () => get<List<Invitation>>('/dashboard/api/invitations'),
  });
  const refresh = () => client.invalidateQueries({ queryKey });
  const invite = useMutation({
    mutationFn: () => post<Invitation>('/dashboard/api/invitations', { role }),
    onSuccess: refresh,
  });

  async function revoke({ id }: Invitation) {
    await remove(`/dashboard/api/invitations/${id}`);
    if (invite.data?.id === id) invite.reset();
    await refresh();
  }

  return (
    <Stack gap="md">
      <Radio.Group label="Invite a" value={role} onChange={(value) => setRole(value as Role)}>
        <Stack gap={6} mt={6}>
          {roles.map((value) => (
            <Radio key={value} value={value} label={value} description={roleMeaning[value]} />
          ))}
        </Stack>
      </Radio.Group>
      <Group>
        <Button onClick={() => invite.mutate()} loading={invite.isPending}>
          Make a link
        </Button>
      </Group>
      <ErrorNotice error={invite.error} />
      {invite.data?.link && (
        <SecretField
          label={`Link for a new ${invite.data.role}, shown once`}
          value={invite.data.link}
        />
      )}
      <DataTable
        label="Open invitations"
        query={invitations}
        likely={1}
        rows={invitations.data?.data}
        columns={[
          { name: 'Role', cell: (invitation) => invitation.role },
          { name: 'Expires', cell: ({ expires_at }) => <RelativeTime at={expires_at} /> },
          {
            name: '',
            cell: (invitation) => (
              <Button variant="default" size="xs" onClick={() => setRevoking(invitation)}>
                Revoke
              </Button>
            ),
          },
        ]}
        empty={
          <Text size="sm" c="dimmed">
            No open invitations.
          </Text>
        }
      />
      {revoking && (
        <ConfirmDialog
          title="Revoke this invitation?"
          action="Revoke"
          onConfirm={() => revoke(revoking)}
          onClose={() => setRevoking(null)}
        >
          Its link stops working at once.
        </ConfirmDialog>
      )}
    </Stack>
  );
}
