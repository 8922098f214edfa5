// The actions on all selected machines, or why they are unavailable.

import { Button, Group, Text } from '@mantine/core';
import type { Instance } from '#cloud/schema.ts';
import { nameOf } from './instances.ts';
import type { MachineAction } from './machine-menu.tsx';

interface SelectionBarProps {
  selected: Instance[];
  total: number;
  onSelectAll: () => void;
  onSelectNone: () => void;
  onChoose: (action: MachineAction) => void;
}

export function SelectionBar(props: SelectionBarProps) {
  const { selected, total, onSelectAll, onSelectNone, onChoose } = props;
  if (total < 2 && selected.length === 0) return null;
  const isAll = total > 0 && selected.length === total;
  const noRestart = selected.find(({ actions }) => !actions.restart.available);
  const noTerminate = selected.find(({ actions }) => !actions.terminate.available);
  const blocked = noTerminate ?? noRestart;
  const reason = noTerminate?.actions.terminate ?? noRestart?.actions.restart;
  const actions = [
    { action: 'restart', label: 'Restart selected', blocker: noRestart },
    { action: 'terminate', label: 'Terminate selected', blocker: noTerminate },
  ] as const;
  return (
    <Group gap="sm">
      <Button variant="default" size="xs" onClick={isAll ? onSelectNone : onSelectAll}>
        {isAll ? 'Deselect all' : 'Select all'}
      </Button>
      {selected.length > 0 &&
        actions.map(({ action, label, blocker }) => (
          <Button
            key={action}
            variant="default"
            size="xs"
            disabled={blocker !== undefined}
            onClick={() => onChoose(action)}
          >
            {label}
          </Button>
        ))}
      <Text size="sm" c="dimmed" role="status">
        {selected.length > 0 && `${selected.length} of ${total} selected.`}
        {blocked && ` ${nameOf(blocked)}: ${reason?.reason_description}`}
      </Text>
    </Group>
  );
}
