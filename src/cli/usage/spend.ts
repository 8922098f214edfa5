// What models and machines cost in a time range. The dashboard adds up the same two figures.

import type { Spend } from '#accounts/schema.ts';
import type { Client } from '#cli/client.ts';
import type { InstanceUsage } from '#cloud/schema.ts';
import { toMoney } from '#lib/text/format.ts';

export interface TimeRange {
  /** ISO 8601. */
  readonly from: string;
  readonly to: string;
}

export interface MachineUsage {
  readonly data: readonly InstanceUsage[];
  readonly next: string | null;
  readonly total: { readonly seconds: number; readonly cents: number };
}

export const machinesPath = '/dashboard/api/usage/machines';

/** The total alone; `data` has one machine at most. */
export const readMachineTotal = async (client: Client, { from, to }: TimeRange) =>
  (
    await client.get<MachineUsage>(
      `${machinesPath}?${new URLSearchParams({ from, to, limit: '1' })}`,
    )
  ).total;

/** US dollars in a month. */
export interface MonthlySpend {
  readonly month: string;
  readonly models: number;
  readonly machines: number;
}

export async function readMonthlySpend(client: Client, spend: Spend): Promise<MonthlySpend> {
  const { cents } = await readMachineTotal(client, {
    from: new Date(`${spend.month}-01`).toISOString(),
    to: new Date().toISOString(),
  });
  return { month: spend.month, models: spend.cost, machines: cents / 100 };
}

/** "$3.61: $0.04 for models, $3.57 for machines" */
export const describeSpend = ({ models, machines }: Omit<MonthlySpend, 'month'>) =>
  `${toMoney(models + machines)}: ${toMoney(models)} for models, ${toMoney(machines)} for machines`;
