// The columns of the request log.

import { Anchor, Code, Group, Text } from '@mantine/core';
import { Link } from 'wouter';
import type { UsageRequest } from '#accounts/usage/schema.ts';
import { toCount, toDuration, toMoney } from '#lib/text/format.ts';
import { CopyButton } from '../components/copy-button.tsx';
import type { Column } from '../components/data-table.tsx';
import { RelativeTime } from '../components/relative-time.tsx';
import { StatusBadge, type Tone } from '../components/status-badge.tsx';

export const statuses: Record<UsageRequest['status'], { name: string; tone: Tone }> = {
  done: { name: 'completed', tone: 'good' },
  running: { name: 'running', tone: 'busy' },
  aborted: { name: 'canceled by client', tone: 'off' },
  failed: { name: 'failed', tone: 'bad' },
  refused: { name: 'refused', tone: 'bad' },
  interrupted: { name: 'interrupted by restart', tone: 'bad' },
};

/** The time lets the server find the row by its index. */
const toRequestPath = ({ id, at }: Pick<UsageRequest, 'id' | 'at'>) =>
  `/usage/requests/${id}/${new URLSearchParams({ at })}`;

export const requestColumns: Column<UsageRequest>[] = [
  {
    name: 'Time',
    cell: ({ at, id }) => (
      <div>
        <Anchor component={Link} href={toRequestPath({ id, at })} size="sm" underline="hover">
          <RelativeTime at={at} />
        </Anchor>
        <Group gap={2} wrap="nowrap">
          {/* Ids of one server begin alike and end in a counter. */}
          <Code>…{id.slice(-12)}</Code>
          <CopyButton value={id} label="Copy request ID" />
        </Group>
      </div>
    ),
  },
  {
    name: 'Model',
    cell: ({ model, served_model, backend }) => (
      <div>
        <Text size="sm" className="breakable">
          {model || 'No model'}
        </Text>
        <Text size="xs" c="dimmed" className="breakable">
          {[served_model === model ? null : served_model, backend].filter(Boolean).join(' · ')}
        </Text>
      </div>
    ),
  },
  {
    name: 'Sent by',
    cell: ({ key_label, key_id, user_email }) => (
      <Text size="sm" className="breakable">
        {key_label === null || key_id === null ? (
          (key_id?.slice(0, 8) ?? user_email ?? 'Former member')
        ) : (
          <Anchor component={Link} href={`/api-keys/${key_id}`} inherit underline="hover">
            {key_label}
          </Anchor>
        )}
      </Text>
    ),
  },
  {
    name: 'Status',
    cell: ({ status, code }) => (
      <div>
        <StatusBadge tone={statuses[status].tone}>{statuses[status].name}</StatusBadge>
        {code && (
          <Text size="xs" c="dimmed" className="breakable">
            {code}
          </Text>
        )}
      </div>
    ),
  },
  {
    name: 'Tokens',
    cell: ({ prompt_tokens, completion_tokens, cached_tokens }) => (
      <div className="one-line">
        {toCount(prompt_tokens)} in, {toCount(completion_tokens)} out
        {cached_tokens > 0 && (
          <Text size="xs" c="dimmed">
            {toCount(cached_tokens)} cached
          </Text>
        )}
      </div>
    ),
  },
  {
    name: 'Duration',
    cell: ({ status, duration_ms, first_token_ms }) => (
      <div className="one-line">
        {status === 'running' ? '–' : toDuration(duration_ms)}
        {first_token_ms !== null && (
          <Text size="xs" c="dimmed">
            {toDuration(first_token_ms)} to first token
          </Text>
        )}
      </div>
    ),
  },
  {
    name: 'Cost',
    isNumber: true,
    cell: ({ cost, reserved }) => (
      <div className="one-line">
        {toMoney(cost)}
        {reserved && (
          <Text size="xs" c="dimmed">
            as reserved
          </Text>
        )}
      </div>
    ),
  },
];
