// What can be done to the chosen machines together, or why it can't.

import { Button, Group, Text } from '@mantine/core';
import type { Instance } from '#cloud/schema.ts';
import { nameOf } from './instances.ts';
import type { Task } from './machine-menu.tsx';

interface SelectionBarProps {
  chosen: Instance[];
  total: number;
  onSelectAll: () => void;
  onSelectNone: () => void;
  onChoose: (task: Task) => void;
}

export function SelectionBar(props: SelectionBarProps) {
  const { chosen, total, onSelectAll, onSelectNone, onChoose } = props;
  const isNone = chosen.length === 0;
  const isAll = total > 0 && chosen.length === total;
  const noRestart = chosen.find(({ actions }) => !actions.restart.available);
  const noTerminate = chosen.find(({ actions }) => !actions.terminate.available);
  const blocked = noTerminate ?? noRestart;
  const reason = noTerminate?.actions.terminate ?? noRestart?.actions.restart;
  return (
    <Group gap="sm">
      <Button
        variant="default"
        size="xs"
        onClick={isAll ? onSelectNone : onSelectAll}
        disabled={total === 0}
      >
        {isAll ? 'Select none' : 'Select all'}
      </Button>
      <Button
        variant="default"
        size="xs"
        disabled={isNone || noRestart !== undefined}
        onClick={() => onChoose('restart')}
      >
        Restart selected
      </Button>
      <Button
        variant="default"
        size="xs"
        disabled={isNone || noTerminate !== undefined}
        onClick={() => onChoose('terminate')}
      >
        Terminate selected
      </Button>
      <Text size="sm" c="dimmed" role="status">
        {chosen.length} of {total} selected.
        {blocked && ` ${nameOf(blocked)}: ${reason?.reason_description}`}
      </Text>
    </Group>
  );
}
