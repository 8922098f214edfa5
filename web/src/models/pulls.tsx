// Running and failed pulls of weights, each with its progress.

import { Group, Paper, Progress, Stack, Text } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import type { Pull, WeightsOverview } from '#inference/weights/schema.ts';
import { toSize } from '#lib/text/format.ts';
import { post, remove } from '../api.ts';
import { NameCell, RowButton } from '../components/data-table.tsx';
import { ErrorNotice } from '../components/error-notice.tsx';
import { Section } from '../components/section.tsx';
import { isLive, toShortName, toShownPulls, weightsKey } from './weights.ts';

export function Pulls({ overview, canUse }: { overview: WeightsOverview; canUse: boolean }) {
  const shown = toShownPulls(overview);
  if (shown.length === 0) return null;
  return (
    <Section title="Downloads">
      {shown.map((pull) => (
        <PullCard key={pull.id} pull={pull} canUse={canUse} />
      ))}
    </Section>
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
          <NameCell name={name}>
            <Text size="xs" c="dimmed">
              {pull.model === null ? 'Serves no model yet' : `For ${pull.model}`}
            </Text>
          </NameCell>
          {canUse && isLive(pull) && (
            <RowButton
              action="Cancel"
              name={`download of ${name}`}
              onClick={() => cancel.mutate()}
              loading={cancel.isPending}
            />
          )}
          {canUse && pull.state === 'failed' && (
            <RowButton
              action="Retry"
              name={`download of ${name}`}
              onClick={() => retry.mutate()}
              loading={retry.isPending}
            />
          )}
        </Group>
        <Progress value={percent} aria-label={`Download of ${name}`} />
        <Text size="xs" c="dimmed">
          {pull.state === 'queued' && 'Queued. '}
          {pull.state === 'failed' && `Failed: ${pull.error ?? 'unknown reason.'} `}
          {toSize(pull.bytes_done)} of {toSize(pull.bytes_total)} ({Math.floor(percent)}%)
        </Text>
        <ErrorNotice error={cancel.error ?? retry.error} />
      </Stack>
    </Paper>
  );
}
