// What a machine printed while it booted.

import { Button, Group, Skeleton } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { Instance } from '#cloud/schema.ts';
import { get } from '../api.ts';
import { ErrorNotice } from '../components/error-notice.tsx';

export function BootLog({ instance }: { instance: Instance }) {
  const log = useQuery({
    queryKey: ['boot-log', instance.id, instance.status],
    queryFn: () => get<{ data: string }>(`/dashboard/api/instances/${instance.id}/boot-log`),
  });
  return (
    <>
      {log.isPending && <Skeleton h={240} aria-busy="true" />}
      <ErrorNotice error={log.error} onRetry={() => log.refetch()} />
      {log.data && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a long log scrolls, which the keyboard must reach
        <pre className="code-block log" tabIndex={0}>
          {log.data.data || 'The boot log is empty.'}
        </pre>
      )}
      {log.data && (
        <Group justify="flex-end" mt="md">
          <Button variant="default" onClick={() => log.refetch()} loading={log.isFetching}>
            Refresh
          </Button>
        </Group>
      )}
    </>
  );
}
