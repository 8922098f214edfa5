// The sidebar: the pages in their groups, and below them the documentation and the version.

import { NavLink, ScrollArea, Text, UnstyledButton } from '@mantine/core';
import IconApi from '@tabler/icons-react/dist/esm/icons/IconApi.mjs';
import IconHelp from '@tabler/icons-react/dist/esm/icons/IconHelp.mjs';
import IconKeyboard from '@tabler/icons-react/dist/esm/icons/IconKeyboard.mjs';
import { Link, useLocation } from 'wouter';
import { useMe } from '../current-user.ts';
import { toNavigation, toSection } from './navigation.ts';

interface SidebarProps {
  onNavigate: () => void;
  onShortcuts: () => void;
}

export function Sidebar({ onNavigate, onShortcuts }: SidebarProps) {
  const { canUse, version } = useMe();
  const [location] = useLocation();
  const section = toSection(location);
  return (
    <>
      <ScrollArea className="sidebar-pages" type="hover">
        {toNavigation(canUse).map(({ group, items }) => (
          <section key={group} aria-labelledby={`nav-${group}`} className="nav-group">
            <Text id={`nav-${group}`} className="nav-title">
              {group}
            </Text>
            {items.map(({ path, name, icon: Icon }) => (
              <NavLink
                key={path}
                component={Link}
                href={path}
                label={name}
                active={section === path}
                aria-current={section === path ? 'page' : undefined}
                leftSection={<Icon size={17} stroke={1.6} aria-hidden />}
                className="nav-link"
                onClick={onNavigate}
              />
            ))}
          </section>
        ))}
      </ScrollArea>
      <div className="sidebar-foot">
        <a href="/docs" className="foot-link">
          <IconApi size={16} stroke={1.6} aria-hidden /> API reference
        </a>
        <a href="/help" className="foot-link">
          <IconHelp size={16} stroke={1.6} aria-hidden /> Help
        </a>
        <UnstyledButton className="foot-link" onClick={onShortcuts}>
          <IconKeyboard size={16} stroke={1.6} aria-hidden /> Keyboard shortcuts
        </UnstyledButton>
        <Text className="version">Millrace {version}</Text>
      </div>
    </>
  );
}
