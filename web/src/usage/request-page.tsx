// One request: what was asked, what served it, how long it took, what it cost, and how it ended. Its address holds
// the time as well, by which the server finds it at once.

import { Anchor, Code, Group, Paper, Skeleton, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { Link } from 'wouter';
import type { UsageRequest } from '#accounts/usage/schema.ts';
import { toCount, toDuration, toMoney } from '#lib/text/format.ts';
import { get } from '../api.ts';
import { useUrlState } from '../browser/url-state.ts';
import { CopyButton } from '../components/copy-button.tsx';
import { ErrorNotice } from '../components/error-notice.tsx';
import { Facts } from '../components/facts.tsx';
import { Page } from '../components/page.tsx';
import { RelativeTime } from '../components/relative-time.tsx';
import { Section } from '../components/section.tsx';
import { StatusBadge } from '../components/status-badge.tsx';
import { toModelPath } from '../models/backends.ts';
import { statuses } from './request-columns.tsx';
import { toSpeed } from './request-speed.ts';

const exact = new Intl.DateTimeFormat('en', { dateStyle: 'medium', timeStyle: 'long' });

export default function RequestPage({ id }: { id: string }) {
  const at = useUrlState(`/usage/requests/${id}`).get('at');
  const request = useQuery({
    queryKey: ['usage-request', id],
    queryFn: () =>
      get<UsageRequest>(
        `/dashboard/api/usage/requests/${id}${at ? `?${new URLSearchParams({ at })}` : ''}`,
      ),
    // A running request changes until it ends.
    refetchInterval: ({ state }) => (state.data?.status === 'running' ? 2000 : false),
  });
  return (
    <Page
      title={`Request …${id.slice(-12)}`}
      parents={[
        { name: 'Usage', path: '/usage' },
        { name: 'Requests', path: '/usage/requests' },
      ]}
      description={
        <Group gap={4} component="span">
          <Code className="breakable">{id}</Code>
          <CopyButton value={id} label="Copy request ID" />
        </Group>
      }
    >
      {request.isPending && <Skeleton h={320} aria-busy="true" />}
      <ErrorNotice error={request.error} onRetry={() => request.refetch()} />
      {request.data && <Story request={request.data} />}
    </Page>
  );
}

function Story({ request }: { request: UsageRequest }) {
  const { status, code, duration_ms, first_token_ms } = request;
  const speed = toSpeed(request);
  return (
    <>
      <Section title="Outcome">
        <Paper withBorder p="lg">
          <Facts
            facts={[
              [
                'Status',
                <StatusBadge key="status" tone={statuses[status].tone}>
                  {statuses[status].name}
                </StatusBadge>,
              ],
              ['Error code', code === null ? 'None' : <Code key="code">{code}</Code>],
              ['Duration', status === 'running' ? 'Running' : toDuration(duration_ms)],
              ['First token', first_token_ms === null ? '–' : toDuration(first_token_ms)],
              ['Speed', speed === null ? '–' : `${speed} tokens/s`],
              ['Cost', toMoney(request.cost)],
            ]}
          />
          <Timeline request={request} />
        </Paper>
      </Section>
      <Section title="Details">
        <Paper withBorder p="lg">
          <dl className="story">
            {toStory(request).map(([name, value]) => (
              <div key={name}>
                <dt>{name}</dt>
                <dd className="breakable">{value}</dd>
              </div>
            ))}
          </dl>
        </Paper>
      </Section>
    </>
  );
}

/** The share of the time before the first token, as a bar. */
function Timeline({ request: { first_token_ms, duration_ms } }: { request: UsageRequest }) {
  if (first_token_ms === null || duration_ms === 0) return null;
  const percent = Math.min(100, (first_token_ms / duration_ms) * 100);
  const label = `${toDuration(first_token_ms)} to the first token, ${toDuration(duration_ms)} in all`;
  return (
    <div className="timeline">
      <svg role="img" aria-label={label} viewBox="0 0 100 4" preserveAspectRatio="none">
        <rect width="100" height="4" className="timeline-output" />
        <rect width={percent} height="4" className="timeline-wait" />
      </svg>
      <Text size="xs" c="dimmed">
        {label}
      </Text>
    </div>
  );
}

function toStory(request: UsageRequest): [string, ReactNode][] {
  const { model, backend, key_id, key_label, reserved } = request;
  const { prompt_tokens, cached_tokens, completion_tokens } = request;
  const link = (href: string, text: string) => (
    <Anchor component={Link} href={href} underline="always" size="sm">
      {text}
    </Anchor>
  );
  const cached = cached_tokens === 0 ? '' : `, ${toCount(cached_tokens)} of them cached`;
  return [
    [
      'Started',
      <>
        <RelativeTime at={request.at} />, {exact.format(new Date(request.at))}
      </>,
    ],
    ['Operation', toOperationName(request.operation)],
    ['Model requested', model === '' ? 'None' : link(toModelPath(model), model)],
    ['Model served', toServedName(request)],
    ['Backend', backend ?? 'None: the request ended before one received it'],
    key_id === null
      ? ['Sent by', `${request.user_email ?? 'a former member'}, signed in`]
      : ['API key', link(`/api-keys/${key_id}`, key_label ?? `${key_id.slice(0, 8)} (revoked)`)],
    ['Input tokens', `${toCount(prompt_tokens)}${cached}`],
    ['Output tokens', toCount(completion_tokens)],
    [
      'Cost',
      `${toMoney(request.cost)}${reserved ? ', as reserved: what was used is not known' : ''}`,
    ],
  ];
}

/** Without a backend, no model has served it. */
function toServedName({ model, served_model, backend }: UsageRequest): string {
  if (backend === null) return 'None';
  return served_model === model ? 'The same' : served_model;
}

/** `ollama_chat` becomes "Ollama chat". */
function toOperationName(operation: string): string {
  const [, base = operation] = /^batch_(.*)$/.exec(operation) ?? [];
  const name = `${base.charAt(0).toUpperCase()}${base.slice(1).replaceAll('_', ' ')}`;
  return base === operation ? name : `${name}, in a batch`;
}
