// Sharing of a conversation with the team: what it means, the link, and how to undo it.

import { Button, Group, Stack, Text } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { SecretField } from '../components/copy-button.tsx';
import { Dialog } from '../components/dialog.tsx';
import { ErrorNotice } from '../components/error-notice.tsx';
import { type Saving, toConversationPath } from './library.ts';

interface ShareDialogProps {
  saving: Saving;
  onClose: () => void;
}

export function ShareDialog({ saving: { saved, share }, onClose }: ShareDialogProps) {
  const change = useMutation({ mutationFn: share });
  if (saved === null) return null;
  const link = `${location.origin}/#${toConversationPath(saved.id)}`;
  return (
    <Dialog onClose={onClose} title="Share conversation" size="lg">
      <Stack>
        <Text size="sm">
          Everyone in your account who has the link can read this conversation, with its system
          prompt and what you add later. They can continue it as a copy of their own, but not change
          yours.
        </Text>
        <ErrorNotice error={change.error} />
        {saved.shared ? (
          <>
            <SecretField label="Link" value={link} />
            <Group justify="flex-end">
              <Button
                variant="default"
                loading={change.isPending}
                onClick={() => change.mutate(false)}
              >
                Stop sharing
              </Button>
              <Button onClick={onClose}>Done</Button>
            </Group>
          </>
        ) : (
          <Group justify="flex-end">
            <Button variant="default" onClick={onClose}>
              Cancel
            </Button>
            <Button loading={change.isPending} onClick={() => change.mutate(true)} data-autofocus>
              Share with the team
            </Button>
          </Group>
        )}
      </Stack>
    </Dialog>
  );
}
