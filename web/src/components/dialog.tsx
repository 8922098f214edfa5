// A dialog that is open as long as it is rendered. When it goes, the focus returns to what opened it, so that the
// keyboard continues there: Mantine's own return needs a dialog that stays and is closed. If that is gone, e.g. with a
// deleted row, the keyboard continues at the content of the page.

import { Modal, type ModalProps } from '@mantine/core';
import { useEffect, useState } from 'react';

export function Dialog(props: Omit<ModalProps, 'opened'>) {
  // Before the dialog takes the focus.
  const [opener] = useState(findOpener);
  useEffect(() => {
    return () => {
      const next = opener?.isConnected ? opener : document.getElementById('main');
      next?.focus({ preventScroll: true });
    };
  }, [opener]);
  return <Modal opened {...props} />;
}

/** The focused element, or the button of the menu that it is in, which is gone by then. */
function findOpener(): HTMLElement | null {
  const active = document.activeElement;
  const label = active?.closest('[role="menu"]')?.getAttribute('aria-labelledby');
  const opener = label == null ? active : document.getElementById(label);
  return opener instanceof HTMLElement && opener !== document.body ? opener : null;
}
