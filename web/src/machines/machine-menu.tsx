// The actions on one machine. Actions that are unavailable are listed with the reason.

import { ActionIcon, Menu, Text } from '@mantine/core';
import IconDots from '@tabler/icons-react/dist/esm/icons/IconDots.mjs';
import type { Instance } from '#cloud/schema.ts';
import { nameOf } from './instances.ts';

export type MachineAction = 'boot-log' | 'rename' | 'tags' | 'restart' | 'terminate';

interface MachineMenuProps {
  instance: Instance;
  canUse: boolean;
  onChoose: (action: MachineAction) => void;
}

export function MachineMenu({ instance, canUse, onChoose }: MachineMenuProps) {
  const { restart, terminate } = instance.actions;
  return (
    <Menu position="bottom-end" withinPortal>
      <Menu.Target>
        <ActionIcon variant="default" aria-label={`Actions for ${nameOf(instance)}`}>
          <IconDots size={17} stroke={1.6} aria-hidden />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown maw={280}>
        <Menu.Item onClick={() => onChoose('boot-log')}>Boot log</Menu.Item>
        {canUse && (
          <>
            <Menu.Item onClick={() => onChoose('rename')}>Rename</Menu.Item>
            <Menu.Item onClick={() => onChoose('tags')}>Edit tags</Menu.Item>
            <Menu.Item disabled={!restart.available} onClick={() => onChoose('restart')}>
              Restart
              <Reason of={restart} />
            </Menu.Item>
            <Menu.Divider />
            <Menu.Item
              c={terminate.available ? 'var(--mantine-color-error)' : undefined}
              disabled={!terminate.available}
              onClick={() => onChoose('terminate')}
            >
              Terminate
              <Reason of={terminate} />
            </Menu.Item>
          </>
        )}
      </Menu.Dropdown>
    </Menu>
  );
}

const Reason = ({ of: { reason_description } }: { of: Instance['actions']['restart'] }) =>
  reason_description ? <Text size="xs">{reason_description}</Text> : null;
