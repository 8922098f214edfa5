// Asks for weights: those known for a model, or any repository that has them.

import { Button, Group, Modal, Select, Stack, TextInput } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import type { ModelWeights } from '#inference/weights/schema.ts';
import { post } from '../api.ts';
import { ErrorNotice } from '../components/error-notice.tsx';
import { weightsKey } from './weights.ts';

interface PullDialogProps {
  models: ModelWeights[];
  /** The model to begin with. */
  wanted: string | null;
  onClose: () => void;
}

export function PullDialog({ models, wanted, onClose }: PullDialogProps) {
  const client = useQueryClient();
  const [model, setModel] = useState(wanted);
  const known = models.find(({ id }) => id === model)?.gguf_repo ?? null;
  const pull = useMutation({
    mutationFn: (form: FormData) => {
      const [repo, quant] = ['repo', 'quant'].map((name) => String(form.get(name)).trim());
      return post('/dashboard/api/weights/pulls', {
        ...(repo ? { repo, as: model } : { model }),
        ...(quant ? { quant } : {}),
      });
    },
    async onSuccess() {
      await client.invalidateQueries({ queryKey: weightsKey });
      onClose();
    },
  });
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    pull.mutate(new FormData(event.currentTarget));
  };
  return (
    <Modal opened onClose={onClose} title="Pull weights">
      <form onSubmit={submit}>
        <Stack>
          <Select
            label="Model"
            description="The id that the weights will answer for."
            placeholder="Choose one"
            data={models.map(({ id }) => id)}
            value={model}
            onChange={setModel}
            allowDeselect={false}
            searchable
          />
          <TextInput
            label="Repository"
            description="On the hub, with GGUF files in it."
            name="repo"
            placeholder={known ?? 'owner/name'}
            required={known === null}
            withAsterisk={false}
            autoComplete="off"
          />
          <TextInput
            label="Quantisation"
            description="Smaller ones need less memory and lose some quality."
            name="quant"
            placeholder="Q4_K_M, or the nearest there is"
            maxLength={32}
            autoComplete="off"
          />
          <ErrorNotice error={pull.error} />
          <Group justify="flex-end">
            <Button variant="default" onClick={onClose}>
              Cancel
            </Button>
            <Button type="submit" loading={pull.isPending} disabled={model === null}>
              Pull
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}
