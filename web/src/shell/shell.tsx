// The frame around every page: sidebar, top bar with breadcrumbs, command palette and keyboard shortcuts.

import { AppShell, Box, Burger, Group, UnstyledButton } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import IconSearch from '@tabler/icons-react/dist/esm/icons/IconSearch.mjs';
import { lazy, type ReactNode, Suspense, useEffect, useRef, useState } from 'react';
import { useLocation } from 'wouter';
import { TrailContext } from '../components/breadcrumbs.tsx';
import { ErrorBoundary } from '../components/error-boundary.tsx';
import { Logo } from '../components/logo.tsx';
import { PageSkeleton } from '../components/page.tsx';
import { useMachineEvents } from '../machines/use-machine-events.ts';
import { AccountMenu, ColorSchemeMenu } from './account-menu.tsx';
import { toSection } from './navigation.ts';
import { PaletteOverlay } from './palette-overlay.tsx';
import { ServerBanner } from './server-banner.tsx';
import { Key, modifier, useShortcuts } from './shortcuts.tsx';
import { Sidebar } from './sidebar.tsx';
import './shell.css';

const ShortcutList = lazy(() => import('./shortcut-list.tsx'));

type Overlay = 'palette' | 'shortcuts' | null;

export function Shell({ children }: { children: ReactNode }) {
  const [opened, { toggle, close }] = useDisclosure(false);
  const [overlay, setOverlay] = useState<Overlay>(null);
  const [trail, setTrail] = useState<HTMLElement | null>(null);
  const [location] = useLocation();
  const main = useFocusOnNavigation(location, close);
  useShortcuts({
    onPalette: () => setOverlay('palette'),
    onHelp: () => setOverlay('shortcuts'),
  });
  useMachineEvents();
  const closeOverlay = () => setOverlay(null);

  return (
    <AppShell
      layout="alt"
      header={{ height: 52 }}
      navbar={{ width: 224, breakpoint: 'sm', collapsed: { mobile: !opened } }}
      padding={{ base: 'md', sm: 'xl' }}
    >
      <button type="button" className="skip-link" onClick={() => main.current?.focus()}>
        Skip to content
      </button>
      <AppShell.Header px={{ base: 'sm', sm: 'xl' }} className="topbar">
        <Group h="100%" justify="space-between" wrap="nowrap">
          <Group gap="sm" wrap="nowrap" miw={0}>
            <Burger
              opened={opened}
              onClick={toggle}
              hiddenFrom="sm"
              size="sm"
              aria-label={opened ? 'Close navigation' : 'Open navigation'}
              aria-expanded={opened}
            />
            <div ref={setTrail} className="trail" />
          </Group>
          <Group gap={6} wrap="nowrap">
            <SearchButton onClick={() => setOverlay('palette')} />
            <ColorSchemeMenu />
            <AccountMenu />
          </Group>
        </Group>
      </AppShell.Header>
      <AppShell.Navbar className="sidebar" aria-label="Main">
        <Group justify="space-between" wrap="nowrap" className="sidebar-head">
          <Logo />
          <Burger
            opened
            onClick={close}
            hiddenFrom="sm"
            size="sm"
            aria-label="Close the navigation menu"
          />
        </Group>
        <Sidebar onNavigate={close} onShortcuts={() => setOverlay('shortcuts')} />
      </AppShell.Navbar>
      <AppShell.Main>
        <ServerBanner />
        <Box ref={main} id="main" tabIndex={-1} maw={1280} className="page">
          <TrailContext value={trail}>
            <ErrorBoundary key={toSection(location)}>
              <Suspense fallback={<PageSkeleton />}>{children}</Suspense>
            </ErrorBoundary>
          </TrailContext>
        </Box>
      </AppShell.Main>
      <Suspense fallback={null}>
        {overlay === 'palette' && (
          <PaletteOverlay onClose={closeOverlay} onShortcuts={() => setOverlay('shortcuts')} />
        )}
        {overlay === 'shortcuts' && <ShortcutList onClose={closeOverlay} />}
      </Suspense>
    </AppShell>
  );
}

const SearchButton = ({ onClick }: { onClick: () => void }) => (
  <UnstyledButton className="search-button" onClick={onClick}>
    <IconSearch size={15} stroke={1.8} aria-hidden />
    <span className="search-label" aria-hidden>
      Search
    </span>
    <span className="visually-hidden">Search and commands</span>
    <span className="search-keys" aria-hidden>
      <Key>{modifier}</Key>
      <Key>K</Key>
    </span>
  </UnstyledButton>
);

/** Moves the focus to the new page. Otherwise it, and screen readers, would stay in the navigation. */
function useFocusOnNavigation(location: string, close: () => void) {
  const main = useRef<HTMLDivElement>(null);
  const previous = useRef(location);
  useEffect(() => {
    if (previous.current === location) return;
    const moved = toSection(previous.current) !== toSection(location);
    previous.current = location;
    close();
    if (!moved) return;
    window.scrollTo(0, 0);
    main.current?.focus({ preventScroll: true });
  }, [location, close]);
  return main;
}
