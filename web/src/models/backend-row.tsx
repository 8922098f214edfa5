// One backend of a model: what it is, how it is, how fast it answers, and what can be done to it.

import { ActionIcon, Badge, Group, Menu, Text } from '@mantine/core';
import IconDots from '@tabler/icons-react/dist/esm/icons/IconDots.mjs';
import type { BackendView } from '#inference/backends/schema.ts';
import { toRelative } from '../components/relative-time.tsx';
import { StatusBadge, type Tone } from '../components/status-badge.tsx';
import { toCounted, toDuration, toRate } from '../format/numbers.ts';

export type BackendAction = 'drain' | 'resume' | 'remove';

interface BackendRowProps {
  backend: BackendView;
  /** What is shown for it, e.g. the file of its weights. */
  name: string;
  canManage: boolean;
  onChoose: (task: BackendAction) => void;
}

export function BackendRow({ backend, name, canManage, onChoose }: BackendRowProps) {
  const { kind, reason, outstanding, errors, requests_per_second, first_token_ms } = backend;
  const { implausible_counts } = backend;
  const facts = [
    `${toRate(requests_per_second)} requests/s`,
    ...(first_token_ms === null ? [] : [`${toDuration(first_token_ms)} to first token`]),
    ...(outstanding > 0 ? [`${outstanding} running`] : []),
    ...(errors > 0 ? [`${toCounted(errors, 'error')} in 5 minutes`] : []),
  ];
  const { tone, word } = toState(backend);
  return (
    <Group gap="xs" wrap="nowrap" align="flex-start" justify="space-between" className="backend">
      <div>
        <Group gap={6}>
          {kind === 'stand-in' ? (
            <Badge variant="default" tt="none">
              built-in stand-in
            </Badge>
          ) : (
            <Text size="sm" fw={500} className="breakable">
              {name}
            </Text>
          )}
          <StatusBadge tone={tone}>{word}</StatusBadge>
        </Group>
        <Text size="xs" c="dimmed" className="breakable">
          {facts.join(' · ')}
        </Text>
        {backend.url && (
          <Text size="xs" c="dimmed" className="breakable">
            {[backend.server, backend.url, backend.upstream_model].filter(Boolean).join(' · ')}
          </Text>
        )}
        {reason && (
          <Text size="xs" className="breakable">
            {reason}
          </Text>
        )}
        {implausible_counts > 0 && (
          <Text size="xs" className="breakable implausible">
            Reported implausible token counts {toTimes(implausible_counts)} in 24 hours; counted
            here instead.
          </Text>
        )}
      </div>
      {canManage && kind === 'upstream' && <BackendMenu backend={backend} onChoose={onChoose} />}
    </Group>
  );
}

const toTimes = (count: number) => (count === 1 ? 'once' : `${count} times`);

function toState(backend: BackendView): { tone: Tone; word: string } {
  if (backend.draining) return { tone: 'quiet', word: 'draining' };
  if (backend.health === 'healthy') return { tone: 'good', word: 'healthy' };
  if (backend.health === 'probation') return { tone: 'waiting', word: 'being tried again' };
  const retry = backend.retry_at === null ? null : Date.parse(backend.retry_at);
  const when = retry === null ? '' : `, next try ${toRelative(retry, Date.now())}`;
  return { tone: 'bad', word: `not answering${when}` };
}

function BackendMenu({ backend, onChoose }: Pick<BackendRowProps, 'backend' | 'onChoose'>) {
  const isFromFile = backend.source === 'file';
  return (
    <Menu position="bottom-end" withinPortal>
      <Menu.Target>
        <ActionIcon variant="subtle" color="gray" aria-label={`More for ${backend.id}`}>
          <IconDots size={17} stroke={1.6} aria-hidden />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown maw={280}>
        {backend.draining ? (
          <Menu.Item onClick={() => onChoose('resume')}>Send requests again</Menu.Item>
        ) : (
          <Menu.Item onClick={() => onChoose('drain')}>
            Drain
            <Text size="xs">No new requests; those that run may finish.</Text>
          </Menu.Item>
        )}
        <Menu.Item
          disabled={isFromFile}
          c={isFromFile ? undefined : 'var(--mantine-color-error)'}
          onClick={() => onChoose('remove')}
        >
          Remove
          {isFromFile && <Text size="xs">It stands in the configuration file.</Text>}
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
