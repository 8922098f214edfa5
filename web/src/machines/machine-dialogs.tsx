// The dialogs of machines that exist: boot log, new name, and the question before a restart or an end.

import { Button, Group, Modal, Skeleton, Stack, TextInput } from '@mantine/core';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import type { FormEvent } from 'react';
import type { Instance } from '#cloud/schema.ts';
import { get, post } from '../api.ts';
import { ConfirmDialog } from '../components/confirm-dialog.tsx';
import { ErrorNotice } from '../components/error-notice.tsx';
import { nameOf } from './instances.ts';
import type { Task } from './machine-menu.tsx';
import { TagsDialog } from './tags-field.tsx';

interface MachineDialogProps {
  task: Task;
  /** One, or several for a restart or an end. */
  instances: Instance[];
  onClose: () => void;
}

export function MachineDialog({ task, instances, onClose }: MachineDialogProps) {
  const client = useQueryClient();
  const [first] = instances;
  if (first === undefined) return null;
  if (task === 'boot-log') return <BootLog instance={first} onClose={onClose} />;
  if (task === 'rename') return <Rename instance={first} onClose={onClose} />;
  if (task === 'tags') return <TagsDialog instance={first} onClose={onClose} />;

  const what = instances.length === 1 ? `“${nameOf(first)}”` : `${instances.length} machines`;
  const names = instances.map(nameOf).join(', ');
  async function operate() {
    const instance_ids = instances.map(({ id }) => id);
    await post(`/api/v1/instance-operations/${task}`, { instance_ids });
    await client.invalidateQueries({ queryKey: ['instances'] });
  }
  const [title, action, text] =
    task === 'restart'
      ? [`Restart ${what}?`, 'Restart', 'What runs ends; disks and addresses stay.']
      : [
          `Terminate ${what}?`,
          'Terminate',
          'The disk and all that is on it are gone for good. Shared filesystems stay.',
        ];
  return (
    <ConfirmDialog title={title} action={action} onConfirm={operate} onClose={onClose}>
      {instances.length > 1 && `${names}. `}
      {text}
    </ConfirmDialog>
  );
}

function BootLog({ instance, onClose }: { instance: Instance; onClose: () => void }) {
  const log = useQuery({
    queryKey: ['boot-log', instance.id, instance.status],
    queryFn: () => get<{ data: string }>(`/dashboard/api/instances/${instance.id}/boot-log`),
  });
  return (
    <Modal opened onClose={onClose} title={`Boot log of “${nameOf(instance)}”`} size="xl">
      {log.isPending && <Skeleton h={240} />}
      <ErrorNotice error={log.error} onRetry={() => log.refetch()} />
      {log.data && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a long log scrolls, also by keyboard
        <pre className="code-block boot-log" tabIndex={0}>
          {log.data.data || 'It has printed nothing.'}
        </pre>
      )}
      {log.data && (
        <Group justify="flex-end" mt="md">
          <Button variant="default" onClick={() => log.refetch()} loading={log.isFetching}>
            Read again
          </Button>
        </Group>
      )}
    </Modal>
  );
}

function Rename({ instance, onClose }: { instance: Instance; onClose: () => void }) {
  const client = useQueryClient();
  const rename = useMutation({
    mutationFn: async (form: FormData) => {
      await post(`/api/v1/instances/${instance.id}`, { name: String(form.get('name')).trim() });
      await client.invalidateQueries({ queryKey: ['instances'] });
    },
    onSuccess: onClose,
  });
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    rename.mutate(new FormData(event.currentTarget));
  };
  return (
    <Modal opened onClose={onClose} title={`Rename “${nameOf(instance)}”`}>
      <form onSubmit={submit}>
        <Stack>
          <TextInput
            label="Name"
            name="name"
            defaultValue={instance.name ?? ''}
            maxLength={64}
            autoComplete="off"
            data-autofocus
          />
          <ErrorNotice error={rename.error} />
          <Group justify="flex-end">
            <Button variant="default" onClick={onClose}>
              Cancel
            </Button>
            <Button type="submit" loading={rename.isPending}>
              Rename
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}
