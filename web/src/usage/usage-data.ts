// Fetches usage. The server adds up the usage of models. Machine hours are computed here from launch and
// termination times, by the same rule as on the server.

import { useQuery } from '@tanstack/react-query';
import type {
  Grouping as ModelGrouping,
  UsageBucket,
  UsageSummary,
} from '#accounts/usage/schema.ts';
import type { InstanceUsage } from '#cloud/schema.ts';
import { get, type List } from '../api.ts';
import { stepMs, type TimeRange, toStarts } from './time-range.ts';
import { type Subject, toTimes, toUsageQuery } from './usage-query.ts';
import { toTotal, type UsagePoint, zeroTotals } from './usage-totals.ts';

export const groupings = [
  { value: 'model', label: 'Model' },
  { value: 'key', label: 'API key' },
  { value: 'backend', label: 'Backend' },
  { value: 'machine', label: 'Machine' },
  { value: 'none', label: 'No grouping' },
] as const;
export type Grouping = (typeof groupings)[number]['value'];

export function useUsage(range: TimeRange, by: Grouping, subject: Subject = {}) {
  return useQuery({
    queryKey: ['usage', range, by, subject],
    refetchInterval: 15_000,
    queryFn: async (): Promise<UsagePoint[]> => {
      if (by === 'machine') {
        return toMachinePoints(await getMachines(range), range, Date.now());
      }
      const usage = await get<UsageSummary>(
        `/dashboard/api/usage?${toUsageQuery(range, by, subject)}`,
      );
      return usage.data.map((bucket) => toPoint(bucket, by));
    },
  });
}

/** The totals of models and of machines, from the same numbers as the charts. Undefined while they load. */
export function useTotals(range: TimeRange) {
  const models = useUsage(range, 'none');
  const machines = useUsage(range, 'machine');
  return {
    models: models.data && toTotal(models.data),
    machines: machines.data && toTotal(machines.data),
    error: models.error ?? machines.error,
  };
}

/** More instances than this in one period are not shown one by one. */
const maxMachines = 10_000;

async function getMachines(range: TimeRange): Promise<InstanceUsage[]> {
  const all: InstanceUsage[] = [];
  let before: string | null = null;
  do {
    const query = new URLSearchParams({ ...toTimes(range), limit: '500' });
    if (before !== null) query.set('before', before);
    const path = `/dashboard/api/usage/machines?${query}`;
    const page: List<InstanceUsage> & { next: string | null } = await get(path);
    all.push(...page.data);
    before = page.next;
  } while (before !== null && all.length < maxMachines);
  return all;
}

const unnamed: Record<ModelGrouping, string> = {
  model: 'Unknown model',
  key: 'Signed-in people',
  backend: 'No backend',
  none: 'All requests',
};

function toPoint(bucket: UsageBucket, by: ModelGrouping): UsagePoint {
  const { start, group, label, ...totals } = bucket;
  return {
    start: Date.parse(start),
    group: group ?? '',
    label: label ?? group ?? unnamed[by],
    totals: { ...totals, hours: 0 },
  };
}

export function toMachinePoints(
  machines: InstanceUsage[],
  range: TimeRange,
  now: number,
): UsagePoint[] {
  const length = stepMs[range.step];
  return toStarts(range).flatMap((start) =>
    machines.flatMap((machine) => {
      const begin = Math.max(Date.parse(machine.launched_at), start);
      const ended = machine.terminated_at === null ? now : Date.parse(machine.terminated_at);
      const end = Math.min(ended, start + length);
      if (end <= begin) return [];
      const hours = (end - begin) / stepMs.hour;
      return {
        start,
        group: machine.instance_id,
        label: machine.name ?? machine.instance_id.slice(0, 8),
        totals: { ...zeroTotals, hours, cost: (hours * machine.price_cents_per_hour) / 100 },
      };
    }),
  );
}
