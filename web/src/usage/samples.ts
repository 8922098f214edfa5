// What the server computes from its newest requests: the last minute, and percentiles of times.

import { useQuery } from '@tanstack/react-query';
import type { UsageLatency, UsageLive } from '#accounts/usage/schema.ts';
import { toDuration } from '#lib/text/format.ts';
import { get } from '../api.ts';
import type { Subject } from './usage-query.ts';

export function useLive() {
  return useQuery({
    queryKey: ['usage-live'],
    refetchInterval: 5000,
    queryFn: () => get<UsageLive>('/dashboard/api/usage/live'),
  });
}

export function useLatency(from: number, subject: Subject) {
  return useQuery({
    queryKey: ['usage-latency', from, subject],
    refetchInterval: 15_000,
    queryFn: () => {
      const query = new URLSearchParams({ from: new Date(from).toISOString(), ...subject });
      return get<UsageLatency>(`/dashboard/api/usage/latency?${query}`);
    },
  });
}

/** "120 ms · 1.4 s", the median and the 95th percentile. */
export const toPercentileText = (times: UsageLatency['duration_ms'] | undefined) =>
  times ? `${toDuration(times.p50)} · ${toDuration(times.p95)}` : '–';
