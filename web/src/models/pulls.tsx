// Downloads of weights that run or failed, each with how far it is.

import { Button, Group, Paper, Progress, Stack, Text, Title } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import type { Pull, WeightsOverview } from '#inference/weights/schema.ts';
import { post, remove } from '../api.ts';
import { ErrorNotice } from '../components/error-notice.tsx';
import { toSize } from '../format/bytes.ts';
import { isLive, toShortName, toShownPulls, weightsKey } from './weights.ts';

export function Pulls({ overview, canUse }: { overview: WeightsOverview; canUse: boolean }) {
  const shown = toShownPulls(overview);
  if (shown.length === 0) return null;
  return (
    <Stack gap="sm">
      <Title order={2} size="h4">
        Downloads
      </Title>
      {shown.map((pull) => (
        <PullCard key={pull.id} pull={pull} canUse={canUse} />
      ))}
    </Stack>
  );
}

function PullCard({ pull, canUse }: { pull: Pull; canUse: boolean }) {
  const client = useQueryClient();
  const onSuccess = () => client.invalidateQueries({ queryKey: weightsKey });
  const cancel = useMutation({
    mutationFn: () => remove(`/dashboard/api/weights/pulls/${pull.id}`),
    onSuccess,
  });
  const retry = useMutation({
    mutationFn: () => {
      const as = pull.model === null ? {} : { as: pull.model };
      return post('/dashboard/api/weights/pulls', {
        repo: pull.repo,
        file: pull.files[0],
        ...as,
      });
    },
    onSuccess,
  });
  const name = toShortName(pull.name);
  const percent = pull.bytes_total === 0 ? 0 : (pull.bytes_done / pull.bytes_total) * 100;
  return (
    <Paper withBorder p="md">
      <Stack gap="xs">
        <Group justify="space-between">
          <div>
            <Text size="sm" fw={500} className="breakable">
              {name}
            </Text>
            <Text size="xs" c="dimmed">
              {pull.model === null ? 'serves no model yet' : `for ${pull.model}`}
            </Text>
          </div>
          {canUse && isLive(pull) && (
            <Button
              variant="default"
              size="xs"
              onClick={() => cancel.mutate()}
              loading={cancel.isPending}
              aria-label={`Cancel the download of ${name}`}
            >
              Cancel
            </Button>
          )}
          {canUse && pull.state === 'failed' && (
            <Button
              variant="default"
              size="xs"
              onClick={() => retry.mutate()}
              loading={retry.isPending}
              aria-label={`Try the download of ${name} again`}
            >
              Try again
            </Button>
          )}
        </Group>
        <Progress value={percent} aria-label={`Download of ${name}`} />
        <Text size="xs" c="dimmed">
          {pull.state === 'queued' && 'Waiting for its turn. '}
          {pull.state === 'failed' && `Failed: ${pull.error ?? 'no reason was given'} `}
          {toSize(pull.bytes_done)} of {toSize(pull.bytes_total)} ({Math.floor(percent)}%)
        </Text>
        <ErrorNotice error={cancel.error ?? retry.error} />
      </Stack>
    </Paper>
  );
}
