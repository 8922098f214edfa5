// Asks before unsaved input is lost: when a dialog is closed, and when the page is left, by a link, the back button
// or a reload.

import type { ModalProps } from '@mantine/core';
import { type ReactNode, useEffect, useRef, useState } from 'react';
import { ConfirmDialog } from './confirm-dialog.tsx';
import { Dialog } from './dialog.tsx';

interface LeaveGuardOptions {
  /** True while there is something to lose. */
  unsaved: boolean;
  title?: string;
  /** What is lost. */
  warning?: ReactNode;
  /** The label of the button that leaves. */
  action?: string;
  /** The page on which nothing is lost, e.g. `/firewall`. Without it, any navigation asks. */
  page?: string;
}

/** `ask` leaves at once if nothing is unsaved, and after a confirmation otherwise; `leaveNow` never asks. */
function useLeaveGuard(options: LeaveGuardOptions) {
  const { unsaved, page } = options;
  const [leave, setLeave] = useState<{ run: () => void } | null>(null);
  const confirmed = useRef(false);
  useEffect(() => {
    if (!unsaved) return;
    // A browser without the Navigation API asks only before a reload.
    const { navigation } = window as Partial<Window>;
    const onNavigate = (event: NavigateEvent) => {
      const { destination, navigationType } = event;
      if (confirmed.current || !event.cancelable || !destination.sameDocument) return;
      if (page !== undefined && new URL(destination.url).hash.startsWith(`#${page}`)) return;
      event.preventDefault();
      const run = () => {
        if (navigationType === 'traverse') navigation?.traverseTo(destination.key);
        else window.location.assign(destination.url);
      };
      setLeave({ run });
    };
    const onUnload = (event: BeforeUnloadEvent) => event.preventDefault();
    navigation?.addEventListener('navigate', onNavigate);
    window.addEventListener('beforeunload', onUnload);
    return () => {
      navigation?.removeEventListener('navigate', onNavigate);
      window.removeEventListener('beforeunload', onUnload);
    };
  }, [unsaved, page]);
  const leaveNow = (run: () => void) => {
    confirmed.current = true;
    run();
  };
  const dialog = leave && (
    <ConfirmDialog
      title={options.title ?? 'Discard unsaved changes?'}
      action={options.action ?? 'Discard'}
      cancel="Stay here"
      onConfirm={async () => leaveNow(leave.run)}
      onClose={() => setLeave(null)}
    >
      {options.warning ?? 'What you entered has not been saved.'}
    </ConfirmDialog>
  );
  const ask = (run: () => void) => (unsaved ? setLeave({ run }) : run());
  return { dialog, ask, leaveNow };
}

/** Guards the input of a page. */
export function LeaveGuard(options: LeaveGuardOptions) {
  return useLeaveGuard(options).dialog;
}

/** The guard of a secret that is shown once, e.g. an API key. */
export const unsavedSecret = (name: string): LeaveGuardOptions => ({
  unsaved: true,
  title: `Close without saving the ${name}?`,
  warning: `The ${name} can’t be shown again. If you have not copied it, you have to create another one.`,
  action: 'Close',
});

interface GuardedModalProps extends Omit<ModalProps, 'opened' | 'onClose' | 'children'> {
  guard: LeaveGuardOptions;
  onClose: () => void;
  /** `close` asks first, as Escape does; `closeNow` does not. */
  children: (close: () => void, closeNow: () => void) => ReactNode;
}

/** A dialog that asks before it closes with something unsaved. */
export function GuardedModal({ guard, onClose, children, ...modal }: GuardedModalProps) {
  const { dialog, ask, leaveNow } = useLeaveGuard(guard);
  const close = () => ask(onClose);
  return (
    <>
      {/* Escape closes the upper dialog only. */}
      <Dialog onClose={close} closeOnEscape={dialog === null} {...modal}>
        {children(close, () => leaveNow(onClose))}
      </Dialog>
      {dialog}
    </>
  );
}
