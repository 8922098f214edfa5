// Loads the command palette, and keeps what is typed until its text field has the focus.

import { lazy, Suspense, useEffect, useState } from 'react';

const Palette = lazy(() => import('./palette.tsx'));

interface PaletteOverlayProps {
  onClose: () => void;
  onShortcuts: () => void;
}

export function PaletteOverlay({ onClose, onShortcuts }: PaletteOverlayProps) {
  const [query, setQuery] = useState('');
  useEffect(() => {
    function onKeyDown(event: KeyboardEvent) {
      if (event.ctrlKey || event.metaKey || event.altKey || isInDialog(event.target)) return;
      if (event.key === 'Escape') onClose();
      else if (event.key === 'Backspace') setQuery((before) => before.slice(0, -1));
      else if (event.key.length === 1) setQuery((before) => before + event.key);
      else return;
      event.preventDefault();
      event.stopPropagation();
    }
    document.addEventListener('keydown', onKeyDown, { capture: true });
    return () => document.removeEventListener('keydown', onKeyDown, { capture: true });
  }, [onClose]);
  return (
    <Suspense fallback={null}>
      <Palette onClose={onClose} onShortcuts={onShortcuts} query={query} setQuery={setQuery} />
    </Suspense>
  );
}

const isInDialog = (target: EventTarget | null) =>
  target instanceof Element && target.closest('[role="dialog"]') !== null;
