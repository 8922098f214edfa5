// Where the numbers come from: the server adds up what models did, and machines are counted here from the
// times at which they came and went, by the same rule as the server's.

import { useQuery } from '@tanstack/react-query';
import type {
  Grouping as ModelGrouping,
  UsageBucket,
  UsageSummary,
} from '#accounts/usage/schema.ts';
import type { MachineUsage } from '#cloud/schema.ts';
import { get, type List } from '../api.ts';
import { type Range, stepMs, toStarts } from './time-range.ts';
import { toTimes, toUsageQuery } from './usage-query.ts';
import { type Cell, none } from './usage-totals.ts';

export const groupings = [
  { value: 'model', label: 'Model' },
  { value: 'key', label: 'API key' },
  { value: 'backend', label: 'Backend' },
  { value: 'machine', label: 'Machine' },
  { value: 'none', label: 'Nothing' },
] as const;
export type Grouping = (typeof groupings)[number]['value'];

export function useCells(range: Range, by: Grouping) {
  return useQuery({
    queryKey: ['usage', range, by],
    refetchInterval: 30_000,
    queryFn: async (): Promise<Cell[]> => {
      if (by === 'machine') {
        const query = new URLSearchParams(toTimes(range));
        const path = `/dashboard/api/usage/machines?${query}`;
        return toMachineCells((await get<List<MachineUsage>>(path)).data, range, Date.now());
      }
      const usage = await get<UsageSummary>(`/dashboard/api/usage?${toUsageQuery(range, by)}`);
      return usage.data.map((bucket) => toCell(bucket, by));
    },
  });
}

const nameless: Record<ModelGrouping, string> = {
  model: 'no model',
  key: 'people in this dashboard',
  backend: 'none was reached',
  none: 'everything',
};

function toCell(bucket: UsageBucket, by: ModelGrouping): Cell {
  const { start, group, label, ...amounts } = bucket;
  return {
    start: Date.parse(start),
    group: group ?? '',
    label: label ?? group ?? nameless[by],
    amounts: { ...amounts, hours: 0 },
  };
}

export function toMachineCells(machines: MachineUsage[], range: Range, now: number): Cell[] {
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
        amounts: { ...none, hours, cost: (hours * machine.price_cents_per_hour) / 100 },
      };
    }),
  );
}
