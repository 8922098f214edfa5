// The account's machines. The server sends an event when one changes, and the lists are fetched again; there
// is no polling.

import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useEffect } from 'react';
import type { Instance, InstanceDetail } from '#cloud/schema.ts';
import { getAll } from '../api.ts';
import { toPemPath } from '../browser/download.ts';
import { filesystemsKey, instanceTypesKey, useList } from '../queries.ts';

export const instancesKey = ['instances'];
const detailsKey = ['instance-details'];
/** What changes when a machine is launched or terminated. */
const dependentKeys = [instancesKey, detailsKey, instanceTypesKey, filesystemsKey];

export function useInstances() {
  const client = useQueryClient();
  useEffect(() => {
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
  }, [client]);
  return useList<Instance>(instancesKey, '/api/v1/instances');
}

/** Details by instance id. */
export function useDetails(): ReadonlyMap<string, InstanceDetail> {
  const details = useQuery({
    queryKey: detailsKey,
    queryFn: () => getAll<InstanceDetail>('/dashboard/api/instances'),
  });
  return new Map(details.data?.data.map((detail) => [detail.id, detail]));
}

export const toMachinePath = ({ id }: Pick<Instance, 'id'>) => `/machines/${id}`;

export const nameOf = ({ name, id }: Pick<Instance, 'name' | 'id'>) => name ?? id.slice(0, 8);

/** The key's file if this server generated it, where the CLI and the dashboard's instructions save it. */
export const findKeyFile = (instance: Instance, detail: InstanceDetail | undefined) =>
  detail?.has_key_file ? toPemPath(instance.ssh_key_names[0] ?? '') : undefined;

export function toSshCommand(instance: Instance, keyFile: string | undefined): string | null {
  const { ip, ssh_port } = instance;
  if (ip === undefined) return null;
  const key = keyFile === undefined ? '' : ` -i ${keyFile}`;
  const port = ssh_port === undefined ? '' : ` -p ${ssh_port}`;
  return `ssh${key}${port} ubuntu@${ip}`;
}
