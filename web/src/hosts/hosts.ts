// The servers that machines run on.

import { useQuery } from '@tanstack/react-query';
import type { HostView } from '#cloud/hosts/schema.ts';
import { toCounted } from '#lib/text/format.ts';
import { get, type List } from '../api.ts';

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

/** Why a host can't be removed; null if it can. */
export function toBlockedReason({ source, status, instances }: HostView): string | null {
  if (source === 'builtin') return 'This host is the server itself.';
  if (source === 'file') return 'Defined in the configuration file.';
  // An offline host can be removed with its machines: if it never comes back, nothing else can end them.
  if (instances > 0 && status !== 'offline') {
    return 'Still has machines. Drain the host and terminate them first.';
  }
  return null;
}

/** What removing a host does. */
export function toRemovalWarning({ status, instances }: HostView): string {
  if (status !== 'offline') {
    return 'No more machines are launched on it. The host itself is not changed.';
  }
  const lost = instances === 0 ? '' : ` and ${toCounted(instances, 'machine')}`;
  return `The host does not respond. Its filesystems${lost} count as lost. Remove it only if it will never come back.`;
}
