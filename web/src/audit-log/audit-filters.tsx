// Filters of the audit log: action, actor and time.

import { useKeyOptions } from '../api-keys/key-options.ts';
import type { UrlState } from '../browser/url-state.ts';
import { DateRangeForm } from '../components/date-range-form.tsx';
import { Filters } from '../components/filters.tsx';
import { useMembers } from '../queries.ts';
import { actionNames } from './action-names.ts';

const dayMs = 86_400_000;
/** The most that one request returns. */
const maxMembers = '500';
const times = [
  { value: '1', label: 'Last 24 hours' },
  { value: '7', label: 'Last 7 days' },
  { value: '30', label: 'Last 30 days' },
  { value: 'dates', label: 'Custom dates…' },
];

interface AuditFiltersProps {
  urlState: UrlState;
  /** Actions in the log, which may include some that have no name. */
  loggedActions: string[];
}

export function AuditFilters({ urlState, loggedActions }: AuditFiltersProps) {
  const members = useMembers({ limit: maxMembers }).data ?? [];
  const [kind, id] = urlState.get('who')?.split(':') ?? [];
  const keys = useKeyOptions((kind === 'api_key_id' && id) || null);
  const users = members.map((member) => ({ value: `user_id:${member.id}`, label: member.email }));
  const programs = keys.data.map(({ value, label }) => ({ value: `api_key_id:${value}`, label }));
  const actions = [...new Set([...Object.keys(actionNames), ...loggedActions])];
  const today = toDay(Date.now());
  const filters = [
    {
      name: 'action',
      label: 'Action',
      data: actions.map((value) => ({ value, label: actionNames[value] ?? value })),
    },
    {
      name: 'who',
      label: 'Actor',
      data: [
        { group: 'Users', items: users },
        { group: 'API keys', items: programs },
      ],
      onSearch: keys.onSearch,
    },
    { name: 'when', label: 'Time', data: times },
  ];
  return (
    <Filters urlState={urlState} filters={filters} reset={{ from: null, to: null }}>
      {urlState.get('when') === 'dates' && (
        <DateRangeForm
          from={urlState.get('from') ?? today}
          to={urlState.get('to') ?? today}
          onChoose={urlState.set}
        />
      )}
    </Filters>
  );
}

/** The filters as query parameters. Relative times are rounded to the minute, which keeps the query key stable. */
export function toAuditQuery(urlState: UrlState): Record<string, string> {
  const query: Record<string, string> = {};
  const action = urlState.get('action');
  if (action !== null) query.action = action;
  const [kind, id] = urlState.get('who')?.split(':') ?? [];
  if (kind !== undefined && id !== undefined) query[kind] = id;
  const when = urlState.get('when');
  if (when === 'dates') {
    const today = toDay(Date.now());
    // Days are in the user's time zone, like the times in the list.
    query.from = new Date(`${urlState.get('from') ?? today}T00:00:00`).toISOString();
    const last = new Date(`${urlState.get('to') ?? today}T00:00:00`);
    last.setDate(last.getDate() + 1);
    query.to = last.toISOString();
  } else if (when !== null) {
    const minute = Math.floor(Date.now() / 60_000) * 60_000;
    query.from = new Date(minute - Number(when) * dayMs).toISOString();
  }
  return query;
}

/** The local date of a time, e.g. `2026-11-15`. */
function toDay(at: number): string {
  const date = new Date(at);
  const pad = (value: number) => String(value).padStart(2, '0');
  return `${date.getFullYear()}-${pad(date.getMonth() + 1)}-${pad(date.getDate())}`;
}
