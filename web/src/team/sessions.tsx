// Where one is signed in, and ending it from afar.

import { Badge, Button, Group, Text } from '@mantine/core';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { get, type List, remove } from '../api.ts';
import { DataTable } from '../components/data-table.tsx';
import { ErrorNotice } from '../components/error-notice.tsx';
import { RelativeTime } from '../components/relative-time.tsx';
import type { Session } from '../current-user.ts';

const queryKey = ['sessions'];

export function Sessions() {
  const client = useQueryClient();
  const sessions = useQuery({
    queryKey,
    queryFn: () => get<List<Session>>('/dashboard/api/sessions'),
  });
  const end = useMutation({
    mutationFn: (id: string) => remove(`/dashboard/api/sessions/${id}`),
    onSuccess: () => client.invalidateQueries({ queryKey }),
  });
  return (
    <>
      <ErrorNotice error={end.error} />
      <DataTable
        label="Your sessions"
        query={sessions}
        likely={1}
        rows={sessions.data?.data}
        columns={[
          {
            name: 'Browser',
            cell: ({ user_agent }) => (
              <Text size="sm" title={user_agent}>
                {toBrowser(user_agent)}
              </Text>
            ),
          },
          { name: 'From', cell: ({ address }) => address },
          { name: 'Signed in', cell: ({ created_at }) => <RelativeTime at={created_at} /> },
          {
            name: '',
            cell: ({ id, current }) =>
              current ? (
                <Badge variant="default" tt="none">
                  this one
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
    </>
  );
}

const browsers: [RegExp, string][] = [
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
  const name = (list: [RegExp, string][]) => list.find(([form]) => form.test(userAgent))?.[1];
  const parts = [name(browsers), name(systems)].filter(Boolean);
  return parts.join(' on ') || userAgent.slice(0, 40) || 'unknown';
}
