// Asks for confirmation before an action that can't be undone.

import { Button, Group, Modal, Stack, Text } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { ErrorNotice } from './error-notice.tsx';

interface ConfirmDialogProps {
  title: string;
  children: ReactNode;
  /** The label of the confirm button, e.g. "Revoke". */
  action: string;
  onConfirm: () => Promise<unknown>;
  onClose: () => void;
}

export function ConfirmDialog({ title, children, action, onConfirm, onClose }: ConfirmDialogProps) {
  const confirm = useMutation({ mutationFn: onConfirm, onSuccess: onClose });
  return (
    <Modal opened onClose={onClose} title={title}>
      <Stack>
        <Text size="sm" component="div">
          {children}
        </Text>
        <ErrorNotice error={confirm.error} />
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose} data-autofocus>
            Cancel
          </Button>
          <Button color="red" onClick={() => confirm.mutate()} loading={confirm.isPending}>
            {action}
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}
