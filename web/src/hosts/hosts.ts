// The servers that machines run on.

import { useQuery } from '@tanstack/react-query';
import type { HostView } from '#cloud/hosts/schema.ts';
import { get, type List } from '../api.ts';
import { toCounted } from '../format/numbers.ts';

export type HostNode = HostView['nodes'][number];
export type Gpu = HostNode['gpus'][number];

export const hostsKey = ['hosts'];
export const hostsPath = '/dashboard/api/hosts';

export function useHosts() {
  return useQuery({
    queryKey: hostsKey,
    queryFn: () => get<List<HostView>>(hostsPath),
    refetchInterval: 5000,
  });
}

export const toHostPath = ({ name }: Pick<HostView, 'name'>) =>
  `${hostsPath}/${encodeURIComponent(name)}`;

/** Why a host has to stay; null when it may go. */
export function toReasonToStay({ source, status, instances }: HostView): string | null {
  if (source === 'builtin') return 'This is the server itself.';
  if (source === 'file') return 'It stands in the configuration file.';
  // The machines of one that never comes back could be ended by nothing else.
  if (instances > 0 && status !== 'offline') {
    return 'It still has machines. Drain it, and end them first.';
  }
  return null;
}

/** What is lost with a host, before it goes. */
export function toRemovalWarning({ status, instances }: HostView): string {
  if (status !== 'offline') {
    return 'No machine is launched there any more. The server itself stays as it is.';
  }
  const machines = instances === 0 ? '' : `, and so do ${toCounted(instances, 'machine')}`;
  return `It does not answer. Its filesystems count as gone${machines}. Do this only if it never comes back.`;
}
