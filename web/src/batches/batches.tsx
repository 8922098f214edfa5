// Batches: requests in a file that run without a client. They are created by a program or the CLI, and followed here.

import { Anchor, Group, Progress, Stack, Text } from '@mantine/core';
import { useInfiniteQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { BatchObject } from '#inference/apis/batches/schema.ts';
import { toCount } from '#lib/text/format.ts';
import { get, post } from '../api.ts';
import { ConfirmDialog } from '../components/confirm-dialog.tsx';
import { type Column, DataTable, NameCell, RowButton } from '../components/data-table.tsx';
import { EmptyState } from '../components/empty-state.tsx';
import { LoadMore } from '../components/filters.tsx';
import { Page } from '../components/page.tsx';
import { RelativeTime } from '../components/relative-time.tsx';
import { StatusBadge, type Tone } from '../components/status-badge.tsx';
import { useMe } from '../current-user.ts';

const batchesKey = ['batches'];

interface BatchPage {
  data: BatchObject[];
  has_more: boolean;
  last_id: string | null;
}

const useBatches = () =>
  useInfiniteQuery({
    queryKey: batchesKey,
    initialPageParam: '',
    queryFn: ({ pageParam }) => get<BatchPage>(`/v1/batches?limit=50${pageParam}`),
    getNextPageParam: ({ has_more, last_id }) => (has_more ? `&after=${last_id}` : null),
    select: ({ pages }) => pages.flatMap(({ data }) => data),
    refetchInterval: 3000,
  });

export default function Batches() {
  const { canUse } = useMe();
  const client = useQueryClient();
  const batches = useBatches();
  const [asked, setAsked] = useState<BatchObject | null>(null);
  const cancel = async ({ id }: BatchObject) => {
    await post(`/v1/batches/${id}/cancel`);
    await client.invalidateQueries({ queryKey: batchesKey });
  };
  const actions: Column<BatchObject> = {
    name: '',
    cell: (batch) =>
      isCancellable(batch) && (
        <RowButton action="Cancel" name={batch.id} onClick={() => setAsked(batch)} />
      ),
  };
  return (
    <Page
      title="Batches"
      description="Requests in a file that run at a lower price, when no other request needs the capacity."
    >
      <DataTable
        label="Batches"
        query={batches}
        rows={batches.data}
        columns={canUse ? [...columns, actions] : columns}
        skeletonLines={2}
        empty={
          <EmptyState
            title="No batches yet"
            art="list"
            command="millrace batches create requests.jsonl"
          >
            Put one request per line into a file and upload it with the CLI or a library for
            OpenAI’s API. The results are files too, which you download here.
          </EmptyState>
        }
      />
      <LoadMore query={batches} />
      {asked && (
        <ConfirmDialog
          title={`Cancel ${asked.id}?`}
          action="Cancel batch"
          cancel="Keep it"
          onConfirm={() => cancel(asked)}
          onClose={() => setAsked(null)}
        >
          Requests that have not run will not run. The results so far are kept.
        </ConfirmDialog>
      )}
    </Page>
  );
}

const isCancellable = ({ status }: BatchObject) =>
  status === 'validating' || status === 'in_progress';

const hasEnded = ({ status }: BatchObject) => !(status in busyWords);

const busyWords: Partial<Record<BatchObject['status'], string>> = {
  validating: 'checking',
  in_progress: 'running',
  finalizing: 'finishing',
  cancelling: 'cancelling',
};

const endTones: Partial<Record<BatchObject['status'], Tone>> = {
  completed: 'good',
  expired: 'warning',
  failed: 'bad',
};

const columns: Column<BatchObject>[] = [
  {
    name: 'Batch',
    value: ({ id, endpoint }) => `${id} ${endpoint}`,
    cell: ({ id, endpoint }) => (
      <NameCell name={id}>
        <Text size="xs" c="dimmed">
          {endpoint}
        </Text>
      </NameCell>
    ),
  },
  {
    name: 'Status',
    filter: true,
    value: ({ status }) => busyWords[status] ?? status,
    cell: (batch) => <Status batch={batch} />,
  },
  {
    name: 'Progress',
    value: ({ request_counts: { completed, failed } }) => completed + failed,
    cell: (batch) => <Done batch={batch} />,
  },
  {
    name: 'Created',
    value: ({ created_at }) => created_at,
    cell: ({ created_at }) => <RelativeTime at={new Date(created_at * 1000).toISOString()} />,
  },
  { name: 'Files', cell: (batch) => hasEnded(batch) && <Files batch={batch} /> },
];

const Status = ({ batch: { status, errors } }: { batch: BatchObject }) => (
  <Stack gap={4} align="start">
    <StatusBadge tone={status in busyWords ? 'busy' : (endTones[status] ?? 'off')}>
      {busyWords[status] ?? status}
    </StatusBadge>
    {errors?.data[0] && (
      <Text size="xs" c="dimmed">
        {errors.data[0].line !== null && `Line ${errors.data[0].line}: `}
        {errors.data[0].message}
      </Text>
    )}
  </Stack>
);

function Done({ batch: { id, request_counts: counts } }: { batch: BatchObject }) {
  const { total, completed, failed } = counts;
  if (total === 0) return null;
  const percent = ((completed + failed) / total) * 100;
  return (
    <Stack gap={4} miw={140}>
      <Progress value={percent} size="sm" aria-label={`Progress of ${id}`} />
      <Text size="xs">
        {toCount(completed + failed)} of {toCount(total)}
        {failed > 0 && `, ${toCount(failed)} failed`}
      </Text>
    </Stack>
  );
}

function Files({ batch: { id, output_file_id, error_file_id } }: { batch: BatchObject }) {
  if (!useMe().canUse) return <span className="muted">Not for viewers</span>;
  return (
    <Group gap="sm">
      <FileLink name="Results" batch={id} file={output_file_id} />
      <FileLink name="Errors" batch={id} file={error_file_id} />
    </Group>
  );
}

interface FileLinkProps {
  name: 'Results' | 'Errors';
  batch: string;
  file: string | null;
}

const FileLink = ({ name, batch, file }: FileLinkProps) =>
  file !== null && (
    <Anchor
      size="sm"
      underline="always"
      href={`/v1/files/${file}/content`}
      download={`${batch}_${name.toLowerCase()}.jsonl`}
      aria-label={`${name} of ${batch}`}
    >
      {name}
    </Anchor>
  );
