// Live figures of one machine, measured every two seconds while the page is visible. The browser keeps the last five
// minutes; nothing is stored on the server.

import { useQuery } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import type { InstanceStats, InstanceStatsResult } from '#cloud/schema.ts';
import { get } from '../api.ts';

const intervalMs = 2000;
const maxSamples = 150;

export function useStats(id: string) {
  const [samples, setSamples] = useState<InstanceStats[]>([]);
  const query = useQuery({
    queryKey: ['instance-stats', id],
    queryFn: () => get<InstanceStatsResult>(`/dashboard/api/instances/${id}/stats`),
    refetchInterval: intervalMs,
    gcTime: 0,
  });
  const latest = query.data?.data;
  useEffect(() => {
    if (!latest) return;
    setSamples((before) =>
      before.at(-1)?.at === latest.at ? before : [...before, latest].slice(-maxSamples),
    );
  }, [latest]);
  return { samples, error: query.error, reason: query.data?.reason ?? null };
}

/** One row of a chart. A member is missing where nothing was measured. */
export interface Point {
  /** The time of day; empty before the first sample. */
  at: string;
  [figure: string]: string | number | undefined;
}

/** Converts samples to rows of a chart, which is as wide as a full history from the start. */
export function toPoints(
  samples: readonly InstanceStats[],
  toFigures: (now: InstanceStats, before: InstanceStats | undefined) => Omit<Point, 'at'>,
): Point[] {
  const empty = Array.from({ length: maxSamples - samples.length }, () => ({ at: '' }));
  const points = samples.map((sample, index) => ({
    at: new Date(sample.at).toLocaleTimeString('en-GB'),
    ...toFigures(sample, samples[index - 1]),
  }));
  return [...empty, ...points];
}

/** How much a counter grew per second; undefined if it was reset, as by a restart, or was not measured twice. */
export function toPerSecond(
  [now, before]: readonly [InstanceStats, InstanceStats | undefined],
  read: (stats: InstanceStats) => number | undefined,
): number | undefined {
  const [to, from] = [read(now), before && read(before)];
  if (before === undefined || to === undefined || from === undefined || to < from) return undefined;
  const seconds = (Date.parse(now.at) - Date.parse(before.at)) / 1000;
  return seconds > 0 ? (to - from) / seconds : undefined;
}
