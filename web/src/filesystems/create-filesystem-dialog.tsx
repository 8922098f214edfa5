// Makes a filesystem.

import { Button, Group, Modal, Select, Stack, TextInput } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import type { NewFilesystem } from '#cloud/schema.ts';
import { post } from '../api.ts';
import { ErrorNotice } from '../components/error-notice.tsx';
import { useRegions } from '../regions.ts';

interface DialogProps {
  onMade: () => void;
  onClose: () => void;
}

export function CreateFilesystemDialog({ onMade, onClose }: DialogProps) {
  const regions = useRegions();
  const [chosen, setChosen] = useState<string | null>(null);
  const region = chosen ?? regions.home;
  const make = useMutation({
    mutationFn: (form: FormData) => {
      const body: NewFilesystem = { name: String(form.get('name')), region: region ?? '' };
      return post('/api/v1/filesystems', body);
    },
    onSuccess() {
      onMade();
      onClose();
    },
  });
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    make.mutate(new FormData(event.currentTarget));
  };
  return (
    <Modal opened onClose={onClose} title="Make a filesystem">
      <form onSubmit={submit}>
        <Stack>
          <TextInput
            label="Name"
            description="Letters, digits and hyphens, starting with a letter."
            name="name"
            required
            maxLength={60}
            pattern="[a-zA-Z]+[0-9a-zA-Z\-]*"
            withAsterisk={false}
            autoComplete="off"
            data-autofocus
          />
          <Select
            label="Region"
            description="Machines can only mount filesystems of their own region."
            data={regions.choices}
            value={region}
            onChange={setChosen}
            allowDeselect={false}
          />
          <ErrorNotice error={make.error ?? regions.error} />
          <Group justify="flex-end">
            <Button variant="default" onClick={onClose}>
              Cancel
            </Button>
            <Button type="submit" loading={make.isPending} disabled={region === null}>
              Make it
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}
