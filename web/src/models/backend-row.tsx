// One backend of a model: its status, its speed, and the actions on it.

import { ActionIcon, Anchor, Group, Menu, Text } from '@mantine/core';
import IconDots from '@tabler/icons-react/dist/esm/icons/IconDots.mjs';
import { Link } from 'wouter';
import type { BackendView } from '#inference/backends/schema.ts';
import { toCounted, toDuration, toRate } from '#lib/text/format.ts';
import { toRelative } from '../components/relative-time.tsx';
import { StatusBadge, type Tone } from '../components/status-badge.tsx';
import { toDeploymentPath } from '../deployments/deployments.ts';
import { standInLabel } from './backends.ts';

export type BackendAction = 'drain' | 'resume' | 'remove';

interface BackendRowProps {
  backend: BackendView;
  /** The name to show, e.g. the file name of its weights. */
  name: string;
  canManage: boolean;
  onChoose: (task: BackendAction) => void;
}

export function BackendRow({ backend, name, canManage, onChoose }: BackendRowProps) {
  const { kind, outstanding, errors, requests, requests_per_second, first_token_ms } = backend;
  const { implausible_counts } = backend;
  const reason = backend.reason ?? backend.last_error;
  const facts = [
    `${toRate(requests_per_second)} requests/s`,
    ...(first_token_ms === null ? [] : [`${toDuration(first_token_ms)} to first token`]),
    ...(outstanding > 0 ? [`${outstanding} in progress`] : []),
    ...(errors > 0
      ? [`${errors} of ${toCounted(requests, 'request')} failed in the last 5 minutes`]
      : []),
  ];
  const { tone, word } = toState(backend);
  return (
    <Group gap="xs" wrap="nowrap" align="flex-start" justify="space-between" className="backend">
      <div>
        <Group gap={6}>
          {kind !== 'stand-in' && (
            <Text size="sm" fw={500} className="breakable">
              {name}
            </Text>
          )}
          <StatusBadge tone={tone}>{word}</StatusBadge>
        </Group>
        {!(kind === 'stand-in' && isUntried(backend)) && (
          <Text size="xs" c="dimmed" className="breakable">
            {facts.join(' · ')}
          </Text>
        )}
        {backend.source === 'deployment' && (
          <Anchor
            component={Link}
            href={toDeploymentPath(deploymentOf(backend))}
            size="xs"
            className="breakable"
          >
            Deployment {deploymentOf(backend)}
          </Anchor>
        )}
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
            Reported implausible token counts {toTimes(implausible_counts)} in 24 hours. This server
            counts the tokens itself.
          </Text>
        )}
      </div>
      {canManage && kind === 'upstream' && backend.source !== 'deployment' && (
        <BackendMenu backend={backend} onChoose={onChoose} />
      )}
    </Group>
  );
}

const toTimes = (count: number) => (count === 1 ? 'once' : `${count} times`);

/** Neither a request nor a check has reached it since the server started. */
const isUntried = ({ requests, first_token_ms, checked_at }: BackendView) =>
  requests === 0 && first_token_ms === null && checked_at === null;

/** Stands for a deployment without a replica that takes requests. */
const isHolding = ({ source, url }: BackendView) => source === 'deployment' && url === null;

/** The name of a replica ends with a hyphen and eight characters of its id. */
const deploymentOf = (backend: BackendView) =>
  isHolding(backend) ? backend.name : backend.name.slice(0, -9);

export function toState(backend: BackendView): { tone: Tone; word: string } {
  if (backend.kind === 'stand-in') return { tone: 'warning', word: standInLabel };
  if (isHolding(backend))
    return backend.draining
      ? { tone: 'warning', word: 'unavailable' }
      : { tone: 'off', word: 'no replica ready' };
  if (backend.draining) return { tone: 'off', word: 'draining' };
  // A backend that fails every request stays healthy for routing if the others fail them too.
  const percent = Math.round((backend.errors / Math.max(1, backend.requests)) * 100);
  if (backend.health === 'healthy' && percent > 0) {
    return { tone: 'warning', word: `failing ${percent}%` };
  }
  if (backend.health === 'healthy' && backend.failing) {
    return { tone: 'warning', word: 'last request failed' };
  }
  if (backend.health === 'healthy' && isUntried(backend)) {
    return { tone: 'off', word: 'not tried yet' };
  }
  // It is taken out after several failures, and a success clears the reason.
  if (backend.health === 'healthy' && backend.reason !== null) {
    return { tone: 'warning', word: 'last check failed' };
  }
  if (backend.health === 'healthy' && backend.slowness !== null)
    return { tone: 'warning', word: `slow, ${backend.slowness}× its peers’ time` };
  if (backend.health === 'healthy') return { tone: 'good', word: 'healthy' };
  if (backend.health === 'probation') return { tone: 'warning', word: 'retrying' };
  const retry = backend.retry_at === null ? null : Date.parse(backend.retry_at);
  const when = retry === null ? '' : `, next retry ${toRelative(retry, Date.now())}`;
  return { tone: 'bad', word: `unavailable${when}` };
}

function BackendMenu({ backend, onChoose }: Pick<BackendRowProps, 'backend' | 'onChoose'>) {
  const isFromFile = backend.source === 'file';
  return (
    <Menu position="bottom-end" withinPortal>
      <Menu.Target>
        <ActionIcon variant="subtle" color="gray" aria-label={`Actions for ${backend.id}`}>
          <IconDots size={17} stroke={1.6} aria-hidden />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown maw={280}>
        {backend.draining ? (
          <Menu.Item onClick={() => onChoose('resume')}>Resume</Menu.Item>
        ) : (
          <Menu.Item onClick={() => onChoose('drain')}>
            Drain
            <Text size="xs">Stops new requests. Requests in progress can finish.</Text>
          </Menu.Item>
        )}
        <Menu.Item
          disabled={isFromFile}
          c={isFromFile ? undefined : 'var(--mantine-color-error)'}
          onClick={() => onChoose('remove')}
        >
          Remove
          {isFromFile && <Text size="xs">Defined in the configuration file.</Text>}
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
