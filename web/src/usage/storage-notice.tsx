// Says that the record of requests is nearly full, or that its oldest requests are being deleted.

import { Alert } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { UsageStorage } from '#accounts/usage/schema.ts';
import { toCount } from '#lib/text/format.ts';
import { get } from '../api.ts';

export function StorageNotice() {
  const { data } = useQuery({
    queryKey: ['usage-storage'],
    queryFn: () => get<UsageStorage>('/dashboard/api/usage/storage'),
  });
  if (data === undefined || data.state === 'ok') return null;
  const [rows, most] = [toCount(data.rows), toCount(data.max_rows)];
  return (
    <Alert
      variant="default"
      title={data.state === 'full' ? 'The request log is full' : 'The request log is nearly full'}
    >
      {data.state === 'full'
        ? `It holds ${most} requests. The oldest are deleted as new ones arrive.`
        : `It holds ${rows} of at most ${most} requests. Beyond that the oldest are deleted.`}{' '}
      Totals over time stay. Raise usage.max_rows in the configuration to keep more.
    </Alert>
  );
}
