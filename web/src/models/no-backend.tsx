// Says that a model that had a backend has none, and lets owners allow the stand-in again.

import { Button, Group, Text } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { post } from '../api.ts';
import { ErrorNotice } from '../components/error-notice.tsx';
import { backendsKey, backendsPath, noBackendText } from './backends.ts';

interface NoBackendProps {
  model: string;
  canManage: boolean;
}

export function NoBackend({ model, canManage }: NoBackendProps) {
  const client = useQueryClient();
  const allow = useMutation({
    mutationFn: () => post(`${backendsPath}/${encodeURIComponent(model)}/stand-in`),
    onSuccess: () => client.invalidateQueries({ queryKey: backendsKey }),
  });
  return (
    <Group justify="space-between">
      <Text size="sm">{noBackendText}</Text>
      {canManage && (
        <Button
          variant="default"
          size="xs"
          loading={allow.isPending}
          onClick={() => allow.mutate()}
        >
          Let the stand-in answer
        </Button>
      )}
      <ErrorNotice error={allow.error} />
    </Group>
  );
}
