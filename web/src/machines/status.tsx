// How a machine is, in a word, and why in a sentence when it is not well.

import { Badge, Stack, Text } from '@mantine/core';
import type { InstanceDetail } from '../../../src/cloud/instance-details.ts';
import type { Instance } from '../../../src/cloud/schema.ts';

interface StatusProps {
  instance: Instance;
  detail: InstanceDetail | undefined;
}

export function Status({ instance, detail }: StatusProps) {
  const { status, actions } = instance;
  const isActing = actions.restart.reason_code === 'vm-action-in-progress';
  const reason = detail?.status_reason ?? detail?.last_error;
  return (
    <Stack gap={4} align="flex-start" className="status">
      <Badge
        variant="default"
        tt="none"
        miw="max-content"
        leftSection={<span className="status-dot" data-status={isActing ? 'booting' : status} />}
      >
        {isActing ? 'restarting' : status}
      </Badge>
      {reason && (
        <Text size="xs" c="dimmed" maw={240} className="breakable">
          {reason}
        </Text>
      )}
    </Stack>
  );
}
