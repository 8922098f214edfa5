// The frame around every page: navigation, color scheme and account menu.

import {
  ActionIcon,
  AppShell,
  Box,
  Burger,
  Group,
  Menu,
  NavLink,
  Stack,
  Text,
  useMantineColorScheme,
} from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import IconBuildingWarehouse from '@tabler/icons-react/dist/esm/icons/IconBuildingWarehouse.mjs';
import IconChartBar from '@tabler/icons-react/dist/esm/icons/IconChartBar.mjs';
import IconDatabase from '@tabler/icons-react/dist/esm/icons/IconDatabase.mjs';
import IconDeviceDesktop from '@tabler/icons-react/dist/esm/icons/IconDeviceDesktop.mjs';
import IconHistory from '@tabler/icons-react/dist/esm/icons/IconHistory.mjs';
import IconHome from '@tabler/icons-react/dist/esm/icons/IconHome.mjs';
import IconKey from '@tabler/icons-react/dist/esm/icons/IconKey.mjs';
import IconLogout from '@tabler/icons-react/dist/esm/icons/IconLogout.mjs';
import IconMessage from '@tabler/icons-react/dist/esm/icons/IconMessage.mjs';
import IconMoon from '@tabler/icons-react/dist/esm/icons/IconMoon.mjs';
import IconServer2 from '@tabler/icons-react/dist/esm/icons/IconServer2.mjs';
import IconShield from '@tabler/icons-react/dist/esm/icons/IconShield.mjs';
import IconSparkles from '@tabler/icons-react/dist/esm/icons/IconSparkles.mjs';
import IconSun from '@tabler/icons-react/dist/esm/icons/IconSun.mjs';
import IconTerminal2 from '@tabler/icons-react/dist/esm/icons/IconTerminal2.mjs';
import IconUserCircle from '@tabler/icons-react/dist/esm/icons/IconUserCircle.mjs';
import IconUsers from '@tabler/icons-react/dist/esm/icons/IconUsers.mjs';
import { type ReactNode, Suspense, useEffect, useRef } from 'react';
import { Link, useLocation } from 'wouter';
import { ErrorBoundary } from './components/error-boundary.tsx';
import { Logo } from './components/logo.tsx';
import { PageSkeleton } from './components/page.tsx';
import { useMe, useSignOut } from './current-user.ts';

const navigation = [
  { path: '/', name: 'Home', icon: IconHome },
  { path: '/playground', name: 'Playground', icon: IconMessage, needsUse: true },
  { path: '/api-keys', name: 'API keys', icon: IconKey },
  { path: '/models', name: 'Models', icon: IconSparkles },
  { path: '/machines', name: 'Machines', icon: IconServer2 },
  { path: '/ssh-keys', name: 'SSH keys', icon: IconTerminal2 },
  { path: '/filesystems', name: 'Filesystems', icon: IconDatabase },
  { path: '/firewall', name: 'Firewall', icon: IconShield },
  { path: '/hosts', name: 'Hosts', icon: IconBuildingWarehouse },
  { path: '/usage', name: 'Usage', icon: IconChartBar },
  { path: '/team', name: 'Team', icon: IconUsers },
  { path: '/audit-log', name: 'Audit log', icon: IconHistory },
];

export function Shell({ children }: { children: ReactNode }) {
  const [opened, { toggle, close }] = useDisclosure(false);
  const [location] = useLocation();
  const main = useFocusOnNavigation(location, close);
  const { canUse } = useMe();
  const section = `/${location.split('/')[1] ?? ''}`;

  return (
    <AppShell
      header={{ height: 56 }}
      navbar={{ width: 216, breakpoint: 'sm', collapsed: { mobile: !opened } }}
      padding={{ base: 'md', sm: 'xl' }}
    >
      <button type="button" className="skip-link" onClick={() => main.current?.focus()}>
        Skip to content
      </button>
      <AppShell.Header px="md">
        <Group h="100%" justify="space-between" wrap="nowrap">
          <Group gap="sm" wrap="nowrap">
            <Burger
              opened={opened}
              onClick={toggle}
              hiddenFrom="sm"
              size="sm"
              aria-label={opened ? 'Close navigation' : 'Open navigation'}
              aria-expanded={opened}
            />
            <Logo />
          </Group>
          <Group gap="xs" wrap="nowrap">
            <ColorSchemeMenu />
            <AccountMenu />
          </Group>
        </Group>
      </AppShell.Header>
      <AppShell.Navbar p="sm" aria-label="Main">
        <Stack gap={2}>
          {navigation
            .filter(({ needsUse }) => canUse || !needsUse)
            .map(({ path, name, icon: Icon }) => (
              <NavLink
                key={path}
                component={Link}
                href={path}
                label={name}
                active={section === path}
                aria-current={section === path ? 'page' : undefined}
                leftSection={<Icon size={18} stroke={1.6} aria-hidden />}
                className="nav-link"
                onClick={close}
              />
            ))}
        </Stack>
      </AppShell.Navbar>
      <AppShell.Main>
        <Box ref={main} id="main" tabIndex={-1} maw={1280} className="page">
          <ErrorBoundary key={section}>
            <Suspense fallback={<PageSkeleton />}>{children}</Suspense>
          </ErrorBoundary>
        </Box>
      </AppShell.Main>
    </AppShell>
  );
}

/** Moves the focus to the new page. Otherwise it, and screen readers, would stay in the navigation. */
function useFocusOnNavigation(location: string, close: () => void) {
  const main = useRef<HTMLDivElement>(null);
  const previous = useRef(location);
  useEffect(() => {
    if (previous.current === location) return;
    const moved = previous.current.split('/')[1] !== location.split('/')[1];
    previous.current = location;
    close();
    if (!moved) return;
    window.scrollTo(0, 0);
    main.current?.focus({ preventScroll: true });
  }, [location, close]);
  return main;
}

const schemes = [
  { value: 'auto', name: 'System', icon: IconDeviceDesktop },
  { value: 'light', name: 'Light', icon: IconSun },
  { value: 'dark', name: 'Dark', icon: IconMoon },
] as const;

function ColorSchemeMenu() {
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  const { icon: Current } = schemes.find(({ value }) => value === colorScheme) ?? schemes[0];
  return (
    <Menu position="bottom-end">
      <Menu.Target>
        <ActionIcon variant="subtle" color="gray" size="lg" aria-label="Color scheme">
          <Current size={19} stroke={1.6} aria-hidden />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        {schemes.map(({ value, name, icon: Icon }) => (
          <Menu.Item
            key={value}
            leftSection={<Icon size={16} stroke={1.6} aria-hidden />}
            onClick={() => setColorScheme(value)}
          >
            {name}
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  );
}

function AccountMenu() {
  const { email, role } = useMe();
  const signOut = useSignOut();
  return (
    <Menu position="bottom-end">
      <Menu.Target>
        <ActionIcon variant="subtle" color="gray" size="lg" aria-label="Account menu">
          <IconUserCircle size={21} stroke={1.6} aria-hidden />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        <Box px="sm" py={6}>
          <Text size="sm" className="breakable">
            {email}
          </Text>
          <Text size="xs" c="dimmed">
            {role}
          </Text>
        </Box>
        <Menu.Divider />
        <Menu.Item component={Link} href="/team">
          Password and sessions
        </Menu.Item>
        <Menu.Item leftSection={<IconLogout size={16} aria-hidden />} onClick={signOut}>
          Sign out
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
