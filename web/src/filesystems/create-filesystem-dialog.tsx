// Creates a filesystem.

import type { NewFilesystem } from '#cloud/schema.ts';
import { post } from '../api.ts';
import { TextField } from '../components/fields.tsx';
import { FormDialog } from '../components/form-dialog.tsx';
import { useRegionSelect } from '../components/use-region-select.tsx';

interface CreateFilesystemDialogProps {
  onCreated: () => void;
  onClose: () => void;
}

export function CreateFilesystemDialog({ onCreated, onClose }: CreateFilesystemDialogProps) {
  const { region, field, error } = useRegionSelect({
    description: 'Machines can mount only filesystems in their own region.',
  });
  async function create(form: FormData) {
    const body: NewFilesystem = { name: String(form.get('name')), region: region ?? '' };
    await post('/api/v1/filesystems', body);
    onCreated();
    onClose();
  }
  return (
    <FormDialog
      title="Create filesystem"
      action="Create filesystem"
      disabled={region === null}
      error={error}
      onSubmit={create}
      onClose={onClose}
    >
      <TextField
        label="Name"
        description="Letters, digits and hyphens, starting with a letter."
        name="name"
        required
        maxLength={60}
        pattern="[a-zA-Z]+[0-9a-zA-Z\-]*"
        data-autofocus
      />
      {field}
    </FormDialog>
  );
}
