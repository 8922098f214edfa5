// What to do with a private key that the browser has downloaded.

import { Code, Group, Text } from '@mantine/core';
import { toKeepCommand } from '../browser/download.ts';
import { CopyButton } from '../components/copy-button.tsx';

export const KeepKey = ({ name }: { name: string }) => (
  <div>
    <Text size="sm" mb={4}>
      Then move it to ~/.ssh. ssh accepts a key file only if other users can’t read it:
    </Text>
    <Group gap={4} wrap="nowrap">
      <Code className="breakable">{toKeepCommand(name)}</Code>
      <CopyButton value={toKeepCommand(name)} label="Copy the command" />
    </Group>
  </div>
);
