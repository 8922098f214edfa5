// The list of keyboard shortcuts, which `?` opens.

import { Stack, Title } from '@mantine/core';
import type { ReactNode } from 'react';
import { Dialog } from '../components/dialog.tsx';
import { useMe } from '../current-user.ts';
import { toNavigation } from './navigation.ts';
import { Key, modifier } from './shortcuts.tsx';

export default function ShortcutList({ onClose }: { onClose: () => void }) {
  const { canUse } = useMe();
  const pages = toNavigation(canUse).flatMap(({ items }) => items);
  return (
    <Dialog onClose={onClose} title="Keyboard shortcuts" size="lg">
      <Stack gap="lg">
        <Group title="General">
          <Shortcut name="Search and commands" keys={[modifier, 'K']} />
          <Shortcut name="Search the table" keys={['/']} />
          <Shortcut name="Previous or next row" keys={['↑', '↓']} />
          <Shortcut name="Close a dialog" keys={['Esc']} />
          <Shortcut name="This list" keys={['?']} />
        </Group>
        <Group title="Open a page">
          {pages.map(({ path, name, key }) => (
            <Shortcut key={path} name={name} keys={['G', key.toUpperCase()]} />
          ))}
        </Group>
      </Stack>
    </Dialog>
  );
}

const Group = ({ title, children }: { title: string; children: ReactNode }) => (
  <section>
    <Title order={3} size="h4" mb={4}>
      {title}
    </Title>
    <dl className="shortcut-list">{children}</dl>
  </section>
);

const Shortcut = ({ name, keys }: { name: string; keys: string[] }) => (
  <div>
    <dt>{name}</dt>
    <dd>
      {keys.map((key) => (
        <Key key={key}>{key}</Key>
      ))}
    </dd>
  </div>
);
