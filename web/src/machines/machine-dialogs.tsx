// The dialogs for actions on machines: boot log, rename, tags, restart and terminate.

import { useQueryClient } from '@tanstack/react-query';
import type { Instance } from '#cloud/schema.ts';
import { post } from '../api.ts';
import { toFieldText } from '../browser/form-data.ts';
import { ConfirmDialog } from '../components/confirm-dialog.tsx';
import { Dialog } from '../components/dialog.tsx';
import { TextField } from '../components/fields.tsx';
import { FormDialog } from '../components/form-dialog.tsx';
import { BootLog } from './boot-log.tsx';
import { instancesKey, nameOf } from './instances.ts';
import type { MachineAction } from './machine-menu.tsx';
import { TagsDialog } from './tags-field.tsx';

interface MachineDialogProps {
  action: MachineAction;
  /** One machine, or several to restart or terminate. */
  instances: Instance[];
  onClose: () => void;
}

export function MachineDialog({ action, instances, onClose }: MachineDialogProps) {
  const [first] = instances;
  if (first === undefined) return null;
  if (action === 'boot-log') return <BootLogDialog instance={first} onClose={onClose} />;
  if (action === 'rename') return <RenameDialog instance={first} onClose={onClose} />;
  if (action === 'tags') return <TagsDialog instance={first} onClose={onClose} />;
  return <OperationDialog operation={action} instances={instances} onClose={onClose} />;
}

const operations = {
  restart: {
    label: 'Restart',
    warning: 'Running programs are stopped. Disks and addresses are kept.',
  },
  terminate: {
    label: 'Terminate',
    warning: 'The disk and everything on it are permanently deleted. Shared filesystems are kept.',
  },
};

interface OperationDialogProps {
  operation: keyof typeof operations;
  instances: Instance[];
  onClose: () => void;
}

function OperationDialog({ operation, instances, onClose }: OperationDialogProps) {
  const client = useQueryClient();
  const names = instances.map(nameOf);
  const target = names.length === 1 ? `“${names[0]}”` : `${names.length} machines`;
  const { label, warning } = operations[operation];
  async function operate() {
    const instance_ids = instances.map(({ id }) => id);
    await post(`/api/v1/instance-operations/${operation}`, { instance_ids });
    await client.invalidateQueries({ queryKey: instancesKey });
  }
  return (
    <ConfirmDialog
      title={`${label} ${target}?`}
      action={label}
      onConfirm={operate}
      onClose={onClose}
    >
      {names.length > 1 && `${names.join(', ')}. `}
      {warning}
    </ConfirmDialog>
  );
}

interface InstanceDialogProps {
  instance: Instance;
  onClose: () => void;
}

const BootLogDialog = ({ instance, onClose }: InstanceDialogProps) => (
  <Dialog onClose={onClose} title={`Boot log of “${nameOf(instance)}”`} size="xl">
    <BootLog instance={instance} />
  </Dialog>
);

function RenameDialog({ instance, onClose }: InstanceDialogProps) {
  const client = useQueryClient();
  async function rename(form: FormData) {
    await post(`/api/v1/instances/${instance.id}`, { name: toFieldText(form, 'name') });
    await client.invalidateQueries({ queryKey: instancesKey });
    onClose();
  }
  return (
    <FormDialog
      title={`Rename “${nameOf(instance)}”`}
      action="Rename"
      onSubmit={rename}
      onClose={onClose}
    >
      <TextField
        label="Name"
        name="name"
        defaultValue={instance.name ?? ''}
        maxLength={64}
        data-autofocus
      />
    </FormDialog>
  );
}
