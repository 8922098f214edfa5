// Copying: a small button beside a value, and a value that is shown only once.

import { ActionIcon, Button, Group, Text, Tooltip } from '@mantine/core';
import { useClipboard } from '@mantine/hooks';
import IconCheck from '@tabler/icons-react/dist/esm/icons/IconCheck.mjs';
import IconCopy from '@tabler/icons-react/dist/esm/icons/IconCopy.mjs';

export function CopyIcon({ value, label }: { value: string; label: string }) {
  const { copied, copy } = useClipboard({ timeout: 1500 });
  const Icon = copied ? IconCheck : IconCopy;
  return (
    <Tooltip label={copied ? 'Copied' : label}>
      <ActionIcon variant="subtle" color="gray" onClick={() => copy(value)} aria-label={label}>
        <Icon size={17} stroke={1.6} aria-hidden />
      </ActionIcon>
    </Tooltip>
  );
}

interface ShownOnceProps {
  label: string;
  value: string;
}

export function ShownOnce({ label, value }: ShownOnceProps) {
  const { copied, copy } = useClipboard({ timeout: 1500 });
  return (
    <div>
      <Text size="sm" fw={500} mb={4}>
        {label}
      </Text>
      <Group gap="sm" align="stretch" wrap="nowrap">
        <output aria-label={label} className="code-block shown-once">
          {value}
        </output>
        <Button
          h="auto"
          onClick={() => copy(value)}
          leftSection={copied ? <IconCheck size={16} /> : <IconCopy size={16} />}
          miw={104}
        >
          {copied ? 'Copied' : 'Copy'}
        </Button>
      </Group>
    </div>
  );
}
