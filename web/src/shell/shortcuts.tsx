// The keyboard shortcuts: the command palette, the list of shortcuts, and two keys that open a page.

import { useHotkeys } from '@mantine/hooks';
import { type ReactNode, useEffect, useRef } from 'react';
import { useLocation } from 'wouter';
import { useMe } from '../current-user.ts';
import { toNavigation } from './navigation.ts';

const isMac = /Mac|iPhone|iPad/.test(navigator.platform);
export const modifier = isMac ? '⌘' : 'Ctrl';

export const Key = ({ children }: { children: ReactNode }) => <kbd className="key">{children}</kbd>;

/** How long the second key may take. */
const sequenceMs = 1000;

interface Shortcuts {
  onPalette: () => void;
  onHelp: () => void;
}

/** None of them works while a text field has the focus, except the palette's, and none while a dialog is open. */
export function useShortcuts({ onPalette, onHelp }: Shortcuts): void {
  const { canUse } = useMe();
  const [, navigate] = useLocation();
  const startedAt = useRef(Number.NEGATIVE_INFINITY);
  useHotkeys([['mod+K', onPalette]], []);
  useEffect(() => {
    const pages = toNavigation(canUse).flatMap(({ items }) => items);
    function onKeyDown(event: KeyboardEvent) {
      if (event.ctrlKey || event.metaKey || event.altKey || isBusy(event.target)) return;
      const page = pages.find(({ key }) => key === event.key);
      const isSecond = event.timeStamp - startedAt.current < sequenceMs;
      startedAt.current = event.key === 'g' ? event.timeStamp : Number.NEGATIVE_INFINITY;
      if (isSecond && page !== undefined) navigate(page.path);
      else if (event.key === '?') onHelp();
      else if (event.key === '/') focusSearch(event);
    }
    document.addEventListener('keydown', onKeyDown);
    return () => document.removeEventListener('keydown', onKeyDown);
  }, [canUse, navigate, onHelp]);
}

const isBusy = (target: EventTarget | null) =>
  document.querySelector('[role="dialog"], [role="menu"]') !== null ||
  (target instanceof HTMLElement &&
    (target.isContentEditable || target.closest('input, textarea, select, .xterm') !== null));

/** Focuses the search field of the page's first table. */
function focusSearch(event: KeyboardEvent): void {
  const field = document.querySelector<HTMLInputElement>('#main input[type="search"]');
  if (field === null) return;
  event.preventDefault();
  field.focus();
}
