// The servers that machines run on.

import { useQuery } from '@tanstack/react-query';
import type { HostView } from '../../../src/cloud/hosts/schema.ts';
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

/** Why a host has to stay; null when it may go. */
export function toReasonToStay({ source, instances }: HostView): string | null {
  if (source === 'builtin') return 'This is the server itself.';
  if (source === 'file') return 'It stands in the configuration file.';
  if (instances > 0) return 'It still has machines. Drain it, and end them first.';
  return null;
}
