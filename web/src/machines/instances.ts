// The account's machines and how they are kept current: the server says that one changed, and the lists are
// read again. Nothing is asked for on a timer.

import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useEffect } from 'react';
import type { Instance, InstanceDetail } from '#cloud/schema.ts';
import { get, type List } from '../api.ts';
import { toPemName } from '../browser/download.ts';

const instancesKey = ['instances'];
const detailsKey = ['instance-details'];
/** What a machine's coming or going changes elsewhere. */
const dependentKeys = [instancesKey, detailsKey, ['instance-types'], ['filesystems']];

export function useInstances() {
  const client = useQueryClient();
  useEffect(() => {
    const events = new EventSource('/dashboard/api/events');
    const refresh = () => {
      for (const queryKey of dependentKeys) client.invalidateQueries({ queryKey });
    };
    // Also the first one of each connection: something may have changed while there was none.
    events.onmessage = refresh;
    // Given up by the browser, e.g. because the session ended: the list says why.
    events.onerror = () => events.readyState === EventSource.CLOSED && refresh();
    return () => events.close();
  }, [client]);
  return useQuery({
    queryKey: instancesKey,
    queryFn: () => get<List<Instance>>('/api/v1/instances'),
  });
}

/** By the id of the machine. */
export function useDetails(): ReadonlyMap<string, InstanceDetail> {
  const details = useQuery({
    queryKey: detailsKey,
    queryFn: () => get<List<InstanceDetail>>('/dashboard/api/instances'),
  });
  return new Map(details.data?.data.map((detail) => [detail.id, detail]));
}

export const nameOf = ({ name, id }: Pick<Instance, 'name' | 'id'>) => name ?? id.slice(0, 8);

/** With the file of a key that was generated here; where that of a pasted one is, its owner knows. */
export function toSshCommand(instance: Instance, hasKeyFile: boolean): string | null {
  const { ip, ssh_port, ssh_key_names } = instance;
  if (ip === undefined) return null;
  const key = hasKeyFile ? ` -i ${toPemName(ssh_key_names[0] ?? '')}` : '';
  const port = ssh_port === undefined ? '' : ` -p ${ssh_port}`;
  return `ssh${key}${port} ubuntu@${ip}`;
}

export const toPrice = (centsPerHour: number) => `$${(centsPerHour / 100).toFixed(2)}/hour`;
