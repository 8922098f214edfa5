// Narrows the audit log down to what happened, who did it, and when.

import { Group, Select } from '@mantine/core';
import type { ApiKey } from '#accounts/schema.ts';
import type { UrlState } from '../browser/url-state.ts';
import { DateRangeForm } from '../components/date-range-form.tsx';
import type { Member } from '../current-user.ts';
import { actions } from './action-names.ts';

const day = 86_400_000;
const times = [
  { value: '1', label: 'Last 24 hours' },
  { value: '7', label: 'Last 7 days' },
  { value: '30', label: 'Last 30 days' },
  { value: 'dates', label: 'Dates…' },
];

interface AuditFiltersProps {
  view: UrlState;
  /** Actions that the log has and that have no words yet. */
  others: string[];
  members: Member[];
  keys: ApiKey[];
}

export function AuditFilters({ view, others, members, keys }: AuditFiltersProps) {
  const people = members.map(({ id, email }) => ({ value: `user_id:${id}`, label: email }));
  const programs = keys.map(({ id, label }) => ({ value: `api_key_id:${id}`, label }));
  const today = toDay(Date.now());
  const filters = [
    {
      name: 'action',
      label: 'What',
      data: [...new Set([...Object.keys(actions), ...others])].map((value) => ({
        value,
        label: actions[value] ?? value,
      })),
    },
    {
      name: 'who',
      label: 'Who',
      data: [
        { group: 'People', items: people },
        { group: 'API keys', items: programs },
      ],
    },
    { name: 'when', label: 'When', data: times },
  ];
  return (
    <Group align="flex-end" gap="sm">
      {filters.map(({ name, label, data }) => (
        <Select
          key={name}
          label={label}
          placeholder="All"
          data={data}
          value={view.get(name)}
          onChange={(value) => view.set({ [name]: value, from: null, to: null })}
          clearable
          clearButtonProps={{ 'aria-label': `All of ${label}` }}
          searchable
          w={220}
        />
      ))}
      {view.get('when') === 'dates' && (
        <DateRangeForm
          from={view.get('from') ?? today}
          to={view.get('to') ?? today}
          onChoose={view.set}
        />
      )}
    </Group>
  );
}

/** The same as the server is asked for it. The key of a list stays the same for a whole minute. */
export function toAuditQuery(view: UrlState): Record<string, string> {
  const query: Record<string, string> = {};
  const action = view.get('action');
  if (action !== null) query.action = action;
  const [kind, id] = view.get('who')?.split(':') ?? [];
  if (kind !== undefined && id !== undefined) query[kind] = id;
  const when = view.get('when');
  if (when === 'dates') {
    const today = toDay(Date.now());
    // Days are those of whoever looks, as are the times in the list.
    query.from = new Date(`${view.get('from') ?? today}T00:00:00`).toISOString();
    const last = new Date(`${view.get('to') ?? today}T00:00:00`);
    last.setDate(last.getDate() + 1);
    query.to = last.toISOString();
  } else if (when !== null) {
    const minute = Math.floor(Date.now() / 60_000) * 60_000;
    query.from = new Date(minute - Number(when) * day).toISOString();
  }
  return query;
}

function toDay(at: number): string {
  const date = new Date(at);
  const two = (value: number) => String(value).padStart(2, '0');
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
}
