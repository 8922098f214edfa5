// Pulls weights for a model, from the repository known for it or from any other.

import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { ModelWeights } from '#inference/weights/schema.ts';
import { post } from '../api.ts';
import { toFieldText } from '../browser/form-data.ts';
import { TextField } from '../components/fields.tsx';
import { FormDialog } from '../components/form-dialog.tsx';
import { ModelSelect } from './model-select.tsx';
import { weightsKey } from './weights.ts';

interface PullDialogProps {
  models: ModelWeights[];
  /** The model that is selected at first; null for none. */
  initialModel: string | null;
  onClose: () => void;
}

export function PullDialog({ models, initialModel, onClose }: PullDialogProps) {
  const client = useQueryClient();
  const [model, setModel] = useState(initialModel);
  const known = models.find(({ id }) => id === model)?.gguf_repo ?? null;
  async function pull(form: FormData) {
    const [repo, quant] = [toFieldText(form, 'repo'), toFieldText(form, 'quant')];
    await post('/dashboard/api/weights/pulls', {
      ...(repo ? { repo, as: model } : { model }),
      ...(quant ? { quant } : {}),
    });
    await client.invalidateQueries({ queryKey: weightsKey });
    onClose();
  }
  return (
    <FormDialog
      title="Pull weights"
      action="Pull weights"
      disabled={model === null}
      onSubmit={pull}
      onClose={onClose}
    >
      <ModelSelect
        description="The model ID that the weights will serve."
        models={models.map(({ id }) => id)}
        value={model}
        onChange={setModel}
      />
      <TextField
        label="Repository"
        description="A repository on the hub that contains GGUF files."
        name="repo"
        placeholder={known ?? 'owner/name'}
        required={known === null}
      />
      <TextField
        label="Quantization"
        description="Smaller quantizations need less memory and lose some quality."
        name="quant"
        placeholder="Q4_K_M, or the closest available"
        maxLength={32}
      />
    </FormDialog>
  );
}
