// The account's members. Owners can change roles and remove members. Everyone can leave.

import { Badge, Checkbox, Group, Select, Text } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { LostSsh, Member } from '#accounts/schema.ts';
import { get, patch } from '../api.ts';
import { type Column, DataTable } from '../components/data-table.tsx';
import { ErrorNotice } from '../components/error-notice.tsx';
import { LoadMore } from '../components/filters.tsx';
import { RelativeTime } from '../components/relative-time.tsx';
import { useDelete } from '../components/use-delete.tsx';
import { meKey, type Role, roleName, roles, useMe } from '../current-user.ts';
import { apiKeysKey, membersKey, useMembers } from '../queries.ts';

/** People can change or remove themselves, so the signed-in user is fetched again as well. */
const queryKeys = [membersKey, meKey];

const toPath = ({ id }: Pick<Member, 'id'>) => `/dashboard/api/members/${id}`;

export function Members() {
  const me = useMe();
  const client = useQueryClient();
  const members = useMembers();
  const [revokesKeys, setRevokesKeys] = useState(true);
  const setRole = useMutation({
    mutationFn: ({ id, role }: { id: string; role: Role }) =>
      patch<RoleChanged>(toPath({ id }), { role }),
    onSuccess: ({ api_keys: keys }, { role }) => {
      if (keys.length > 0) notifications.show({ message: describeKeys(keys, role) });
      return Promise.all(queryKeys.map((queryKey) => client.invalidateQueries({ queryKey })));
    },
  });
  const removal = useDelete<Member>({
    action: ({ id }) => (id === me.id ? 'Leave' : 'Remove'),
    nameOf: ({ email }) => email,
    title: ({ id, email }) => (id === me.id ? 'Leave this account?' : `Remove “${email}”?`),
    blockedReason: ({ id }) => (me.canManage || id === me.id ? null : ''),
    warning: (member) => (
      <RemovalWarning
        member={member}
        isMe={member.id === me.id}
        canKeepKeys={me.canManage}
        revokesKeys={revokesKeys}
        onChange={setRevokesKeys}
      />
    ),
    pathOf: (member) => `${toPath(member)}?keys=${revokesKeys ? 'revoke' : 'keep'}`,
    queryKeys: [...queryKeys, apiKeysKey],
    onClosed: () => setRevokesKeys(true),
    doneMessage: ({ id, email }) =>
      id === me.id ? 'You have left the account.' : `${email} was removed.`,
  });
  const columns: Column<Member>[] = [
    {
      name: 'Email',
      value: ({ email }) => email,
      cell: ({ id, email }) => <Email email={email} isMe={id === me.id} />,
    },
    {
      name: 'Role',
      filter: true,
      value: ({ role }) => role,
      cell: ({ id, email, role }) =>
        me.canManage ? (
          <Select
            aria-label={`Role of ${email}`}
            data={roles.map((value) => ({ value, label: roleName[value] }))}
            value={role}
            onChange={(value) => value && setRole.mutate({ id, role: value as Role })}
            allowDeselect={false}
            disabled={setRole.isPending}
            size="xs"
            w={110}
          />
        ) : (
          roleName[role]
        ),
    },
    {
      name: 'Joined',
      value: ({ joined_at }) => joined_at,
      cell: ({ joined_at }) => <RelativeTime at={joined_at} />,
    },
    removal.column,
  ];
  return (
    <>
      <ErrorNotice error={setRole.error} />
      <DataTable
        label="People"
        query={members}
        skeletonRows={1}
        rows={members.data}
        columns={columns}
        empty={null}
      />
      <LoadMore query={members} />
      {removal.dialog}
    </>
  );
}

interface RoleChanged {
  api_keys: { label: string }[];
}

/** Says what the keys of a person can do after a change of the role. */
function describeKeys(keys: RoleChanged['api_keys'], role: Role): string {
  const labels = keys.slice(0, 5).map(({ label }) => `“${label}”`);
  if (keys.length > labels.length) labels.push(`${keys.length - labels.length} more`);
  const can = role === 'viewer' ? 'can only read now' : 'can be used again';
  return `API keys that they created ${can}: ${labels.join(', ')}.`;
}

interface RemovalWarningProps {
  member: Member;
  isMe: boolean;
  /** A person who has left still knows the keys, so only an owner decides to keep them. */
  canKeepKeys: boolean;
  revokesKeys: boolean;
  onChange: (revokesKeys: boolean) => void;
}

const RemovalWarning = ({
  member,
  isMe,
  canKeepKeys,
  revokesKeys,
  onChange,
}: RemovalWarningProps) => (
  <>
    {isMe
      ? 'You leave the account and are signed out immediately. Only a new invitation lets you in again. Your conversations and presets are deleted.'
      : 'They are signed out immediately. Their conversations and presets are deleted.'}
    <LostSshNotice member={member} />
    {member.role === 'owner' && ` Invitations ${isMe ? 'you' : 'they'} created stop working.`}
    {member.api_keys > 0 && !canKeepKeys && ' The API keys you created are revoked.'}
    {member.api_keys > 0 && canKeepKeys && (
      <Checkbox
        mt="md"
        label={`Revoke the ${member.api_keys === 1 ? 'API key' : `${member.api_keys} API keys`} ${isMe ? 'you' : 'they'} created`}
        description="New requests with a revoked key are refused immediately. Keys that are not revoked keep working, with your role."
        checked={revokesKeys}
        onChange={({ currentTarget }) => onChange(currentTarget.checked)}
      />
    )}
  </>
);

/** Names the machines that the person reaches by ssh now. */
function LostSshNotice({ member }: { member: Member }) {
  const { data } = useQuery({
    queryKey: [...membersKey, member.id, 'ssh'],
    queryFn: () => get<LostSsh>(`${toPath(member)}/ssh`),
  });
  if (data === undefined || data.ssh_keys.length === 0) return null;
  const names = (all: LostSsh['machines']) => all.map(({ id, name }) => name ?? id).join(', ');
  const launched =
    data.machines.length > 0 && ` These were launched with one: ${names(data.machines)}.`;
  return (
    <Text size="sm" mt="xs" className="breakable">
      All machines refuse these SSH keys and end their sessions: {names(data.ssh_keys)}.{launched}
    </Text>
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
