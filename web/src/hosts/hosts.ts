// The servers that machines run on.

import { useQuery } from '@tanstack/react-query';
import { get, type List } from '../api.ts';

export interface Gpu {
  address: string;
  model: string;
  memory_gib: number;
  /** The machine that has it; null when it is free. */
  instance_id: string | null;
}

export interface HostNode {
  name: string;
  online: boolean;
  vcpus: number;
  vcpus_used: number;
  memory_gib: number;
  memory_gib_used: number;
  storage_gib: number;
  gpus: Gpu[];
}

export interface Host {
  id: string;
  name: string;
  region: string;
  driver: 'sandbox' | 'incus';
  url: string | null;
  target: string | null;
  /** e.g. `lxd 5.0.2`. */
  engine: string | null;
  status: 'online' | 'offline' | 'draining';
  reason: string | null;
  seen_at: string | null;
  nodes: HostNode[];
  instances: number;
  source: 'file' | 'live' | 'builtin';
}

export interface HostCheck {
  ok: boolean;
  checks: { name: string; ok: boolean; message: string }[];
}

export const hostsKey = ['hosts'];
export const hostsPath = '/dashboard/api/hosts';

export function useHosts() {
  return useQuery({
    queryKey: hostsKey,
    queryFn: () => get<List<Host>>(hostsPath),
    refetchInterval: 5000,
  });
}

export const toHostPath = ({ name }: Pick<Host, 'name'>) =>
  `${hostsPath}/${encodeURIComponent(name)}`;

/** Why a host has to stay; null when it may go. */
export function toReasonToStay({ source, instances }: Host): string | null {
  if (source === 'builtin') return 'This is the server itself.';
  if (source === 'file') return 'It stands in the configuration file.';
  if (instances > 0) return 'It still has machines. Drain it, and end them first.';
  return null;
}
