// The user's sessions in all browsers and CLIs, each of which can be signed out.

import { Badge, Button, Group, Text } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { remove } from '../api.ts';
import { DataTable } from '../components/data-table.tsx';
import { ErrorNotice } from '../components/error-notice.tsx';
import { LoadMore } from '../components/filters.tsx';
import { RelativeTime } from '../components/relative-time.tsx';
import type { Session } from '../current-user.ts';
import { usePagedList } from '../queries.ts';

const queryKey = ['sessions'];
const path = '/dashboard/api/sessions';

export function Sessions() {
  const client = useQueryClient();
  const sessions = usePagedList<Session>('sessions', path);
  const end = useMutation({
    mutationFn: (id: string) => remove(`${path}/${id}`),
    onSuccess: () => client.invalidateQueries({ queryKey }),
  });
  return (
    <>
      <ErrorNotice error={end.error} />
      <DataTable
        label="Your sessions"
        name="sessions-"
        query={sessions}
        skeletonRows={1}
        rows={sessions.data}
        columns={[
          {
            name: 'Browser',
            value: ({ user_agent }) => toBrowser(user_agent),
            cell: ({ user_agent }) => (
              <Text size="sm" title={user_agent}>
                {toBrowser(user_agent)}
              </Text>
            ),
          },
          { name: 'IP address', value: ({ address }) => address, cell: ({ address }) => address },
          {
            name: 'Signed in',
            value: ({ created_at }) => created_at,
            cell: ({ created_at }) => <RelativeTime at={created_at} />,
          },
          {
            name: '',
            cell: ({ id, current }) =>
              current ? (
                <Badge variant="default" tt="none">
                  this session
                </Badge>
              ) : (
                <Group justify="flex-end">
                  <Button
                    variant="default"
                    size="xs"
                    onClick={() => end.mutate(id)}
                    loading={end.isPending && end.variables === id}
                  >
                    Sign out
                  </Button>
                </Group>
              ),
          },
        ]}
        empty={null}
      />
      <LoadMore query={sessions} />
    </>
  );
}

const browsers: [RegExp, string][] = [
  [/^millrace-cli\//, 'Millrace CLI'],
  [/Edg\//, 'Edge'],
  [/Firefox\//, 'Firefox'],
  [/Chrom(e|ium)\//, 'Chrome'],
  [/Safari\//, 'Safari'],
];
const systems: [RegExp, string][] = [
  [/Android/, 'Android'],
  [/iPhone|iPad/, 'iOS'],
  [/Windows/, 'Windows'],
  [/Mac OS X/, 'macOS'],
  [/Linux/, 'Linux'],
];

function toBrowser(userAgent: string): string {
  const name = (list: [RegExp, string][]) => list.find(([pattern]) => pattern.test(userAgent))?.[1];
  const parts = [name(browsers), name(systems)].filter(Boolean);
  return parts.join(' on ') || userAgent.slice(0, 40) || 'Unknown browser';
}
