// The field for tags, at launch and for existing machines.

import { TagsInput } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { Instance } from '#cloud/schema.ts';
import { put } from '../api.ts';
import { useFieldError } from '../components/fields.tsx';
import { FormDialog } from '../components/form-dialog.tsx';
import { instancesKey, nameOf } from './instances.ts';
import { findTagError, fromTag, maxTags, toTag } from './tags.ts';

interface TagsFieldProps {
  /** As typed, e.g. `team=vision`. */
  tags: string[];
  onChange: (tags: string[]) => void;
  /** What the API said about them at a launch. */
  error?: string | undefined;
}

export function TagsField({ tags, onChange, error }: TagsFieldProps) {
  const refusal = useFieldError('tags');
  return (
    <TagsInput
      label="Tags"
      description="Help you tell machines apart, e.g. team=vision. Press Enter after each tag."
      placeholder={tags.length === 0 ? 'None' : ''}
      value={tags}
      onChange={onChange}
      maxTags={maxTags}
      error={findTagError(tags) ?? error ?? refusal}
      acceptValueOnBlur
    />
  );
}

export function TagsDialog({ instance, onClose }: { instance: Instance; onClose: () => void }) {
  const client = useQueryClient();
  const [tags, setTags] = useState(() => (instance.tags ?? []).map(fromTag));
  async function save() {
    await put(`/dashboard/api/instances/${instance.id}/tags`, { tags: tags.map(toTag) });
    await client.invalidateQueries({ queryKey: instancesKey });
    onClose();
  }
  return (
    <FormDialog
      title={`Edit tags of “${nameOf(instance)}”`}
      action="Save"
      disabled={findTagError(tags) !== null}
      onSubmit={save}
      onClose={onClose}
    >
      <TagsField tags={tags} onChange={setTags} />
    </FormDialog>
  );
}
