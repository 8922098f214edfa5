// Tags as they are typed: at a launch, and of a machine that exists.

import { Button, Group, Modal, Stack, TagsInput } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import type { Instance } from '#cloud/schema.ts';
import { put } from '../api.ts';
import { ErrorNotice } from '../components/error-notice.tsx';
import { nameOf } from './instances.ts';
import { findTagError, fromTag, maxTags, toTag } from './tags.ts';

interface TagsFieldProps {
  /** As typed. */
  tags: string[];
  onChange: (tags: string[]) => void;
}

export const TagsField = ({ tags, onChange }: TagsFieldProps) => (
  <TagsInput
    label="Tags"
    description="To tell machines apart, e.g. team=vision. Enter ends each."
    placeholder={tags.length === 0 ? 'None' : ''}
    value={tags}
    onChange={onChange}
    maxTags={maxTags}
    error={findTagError(tags)}
    acceptValueOnBlur
  />
);

export function TagsDialog({ instance, onClose }: { instance: Instance; onClose: () => void }) {
  const client = useQueryClient();
  const [tags, setTags] = useState(() => (instance.tags ?? []).map(fromTag));
  const change = useMutation({
    mutationFn: async () => {
      await put(`/dashboard/api/instances/${instance.id}/tags`, { tags: tags.map(toTag) });
      await client.invalidateQueries({ queryKey: ['instances'] });
    },
    onSuccess: onClose,
  });
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    change.mutate();
  };
  return (
    <Modal opened onClose={onClose} title={`Tags of “${nameOf(instance)}”`}>
      <form onSubmit={submit}>
        <Stack>
          <TagsField tags={tags} onChange={setTags} />
          <ErrorNotice error={change.error} />
          <Group justify="flex-end">
            <Button variant="default" onClick={onClose}>
              Cancel
            </Button>
            <Button type="submit" loading={change.isPending} disabled={findTagError(tags) !== null}>
              Save
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}
