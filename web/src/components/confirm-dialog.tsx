// Asks for confirmation before an action that can't be undone.

import { Button, Group, Stack, Text } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { Dialog } from './dialog.tsx';
import { ErrorNotice } from './error-notice.tsx';

interface ConfirmDialogProps {
  title: string;
  children: ReactNode;
  /** The label of the confirm button, e.g. "Revoke". */
  action: string;
  /** The label of the other button. */
  cancel?: string;
  onConfirm: () => Promise<unknown>;
  onClose: () => void;
}

export function ConfirmDialog(props: ConfirmDialogProps) {
  const { title, children, action, cancel = 'Cancel', onConfirm, onClose } = props;
  const confirm = useMutation({ mutationFn: onConfirm, onSuccess: onClose });
  return (
    <Dialog onClose={onClose} title={title}>
      <Stack>
        <Text size="sm" component="div">
          {children}
        </Text>
        <ErrorNotice error={confirm.error} />
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose} data-autofocus>
            {cancel}
          </Button>
          <Button color="red" onClick={() => confirm.mutate()} loading={confirm.isPending}>
            {action}
          </Button>
        </Group>
      </Stack>
    </Dialog>
  );
}
