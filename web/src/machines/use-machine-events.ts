// Fetches the lists of machines again when the server says that one has changed; there is no polling. A tab has one
// connection for it, and none while it is hidden: a browser has six connections to a server for all of its tabs.

import { useDocumentVisibility } from '@mantine/hooks';
import { useQueryClient } from '@tanstack/react-query';
import { useEffect } from 'react';
import { filesystemsKey, instanceTypesKey } from '../queries.ts';
import { detailsKey, instancesKey } from './instances.ts';

/** What changes when a machine is launched or terminated. */
const dependentKeys = [instancesKey, detailsKey, instanceTypesKey, filesystemsKey];

export function useMachineEvents(): void {
  const client = useQueryClient();
  const isHidden = useDocumentVisibility() === 'hidden';
  useEffect(() => {
    if (isHidden) return;
    const events = new EventSource('/dashboard/api/events');
    const refresh = () => {
      for (const queryKey of dependentKeys) client.invalidateQueries({ queryKey });
    };
    // Each connection begins with an event, because something may have changed while there was none.
    events.onmessage = refresh;
    // The server is down, or the session has ended. Fetching the list shows which. The browser reconnects every few
    // seconds, so a fetch that is being retried must not start over.
    events.onerror = () =>
      client.invalidateQueries({ queryKey: instancesKey }, { cancelRefetch: false });
    return () => events.close();
  }, [client, isHidden]);
}
