// Says on every page that the server is unreachable, since when, and that what is shown may be out of date.

import { Button } from '@mantine/core';
import IconPlugConnectedX from '@tabler/icons-react/dist/esm/icons/IconPlugConnectedX.mjs';
import { ApiError } from '../api.ts';
import { RelativeTime } from '../components/relative-time.tsx';
import { useMeQuery } from '../current-user.ts';

/** In the time zone of the browser. */
const clockTime = new Intl.DateTimeFormat('en', { timeStyle: 'short', hourCycle: 'h23' });

export function ServerBanner() {
  const me = useMeQuery();
  if (!(me.error instanceof ApiError) || me.error.status !== 0) return null;
  return (
    <div role="status" className="server-banner">
      <IconPlugConnectedX size={18} stroke={1.7} aria-hidden />
      <span>
        The server does not respond. This page has not been updated since{' '}
        {clockTime.format(me.dataUpdatedAt)} (
        <RelativeTime at={new Date(me.dataUpdatedAt).toISOString()} />
        ).
      </span>
      <Button
        size="compact-xs"
        variant="default"
        ml="auto"
        loading={me.isFetching}
        onClick={() => me.refetch()}
      >
        Try again
      </Button>
    </div>
  );
}
