// Taking something away from a list: a button in its row, the question before it, a word after it.

import { Button } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { type ReactNode, useState } from 'react';
import { ConfirmDialog } from './confirm-dialog.tsx';
import type { Column } from './data-table.tsx';

interface DeleteOptions<T> {
  /** The word on the button, e.g. "Revoke". */
  action: string;
  nameOf: (row: T) => string;
  /** What will be lost. */
  warning: (row: T) => ReactNode;
  onRemove: (row: T) => Promise<unknown>;
  /** Said once it is done. */
  done: (row: T) => string;
  /** Why a row has to stay; null when it may go. */
  reasonToStay?: (row: T) => string | null;
}

export interface Deletion<T> {
  button: (row: T) => ReactNode;
  /** The last column of a list, with nothing but the button. */
  column: Column<T>;
  dialog: ReactNode;
}

export function useDelete<T>(options: DeleteOptions<T>): Deletion<T> {
  const { action, nameOf, warning, onRemove, done, reasonToStay } = options;
  const [leaving, setLeaving] = useState<T | null>(null);
  const button = (row: T) => {
    const reason = reasonToStay?.(row) ?? null;
    if (reason !== null) return <span className="quiet">{reason}</span>;
    return (
      <Button
        variant="default"
        size="xs"
        onClick={() => setLeaving(row)}
        aria-label={`${action} ${nameOf(row)}`}
      >
        {action}
      </Button>
    );
  };
  async function confirm(row: T) {
    await onRemove(row);
    notifications.show({ message: done(row) });
  }
  const dialog = leaving !== null && (
    <ConfirmDialog
      title={`${action} “${nameOf(leaving)}”?`}
      action={action}
      onConfirm={() => confirm(leaving)}
      onClose={() => setLeaving(null)}
    >
      {warning(leaving)}
    </ConfirmDialog>
  );
  return { button, column: { name: '', cell: button }, dialog };
}
