// A dialog with one form in it: the fields, the error if saving fails, and the buttons. It asks before it discards
// what was entered.

import { Button, Group, type ModalProps } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';
import { Form } from './form.tsx';
import { GuardedModal } from './leave-guard.tsx';

interface FormDialogProps {
  title: string;
  /** The label of the submit button. */
  action: string;
  size?: ModalProps['size'];
  /** True while the form can't be submitted. */
  disabled?: boolean;
  /** An error from elsewhere, e.g. from loading the options of a field. */
  error?: unknown;
  /** A button at the left of the others. */
  secondaryAction?: ReactNode;
  /** Saves the form and closes the dialog. If it rejects, the dialog stays open and shows the error. */
  onSubmit: (form: FormData) => Promise<void>;
  onClose: () => void;
  children: ReactNode;
}

export function FormDialog(props: FormDialogProps) {
  const { title, action, size = 'md', disabled = false, onSubmit, onClose } = props;
  const [edited, setEdited] = useState(false);
  const submit = useMutation({ mutationFn: (form: FormData) => onSubmit(form) });
  const change = () => {
    setEdited(true);
    if (submit.isError) submit.reset();
  };
  // A form that is being saved may close: its dialog often has an address of its own, so that closing navigates.
  const unsaved = edited && !submit.isPending && !submit.isSuccess;
  return (
    <GuardedModal guard={{ unsaved }} onClose={onClose} title={title} size={size}>
      {(close) => (
        <Form
          onSubmit={submit.mutate}
          onChange={change}
          error={submit.error ?? props.error}
          actions={
            <Group justify="flex-end">
              {props.secondaryAction}
              <Button variant="default" onClick={close}>
                Cancel
              </Button>
              <Button type="submit" loading={submit.isPending} disabled={disabled}>
                {action}
              </Button>
            </Group>
          }
        >
          {props.children}
        </Form>
      )}
    </GuardedModal>
  );
}
