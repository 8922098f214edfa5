// Taking something away from a list: a button in its row, the question before it, a word after it.

import { Button } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { type ReactNode, useState } from 'react';
import { Confirm } from './confirm.tsx';
import type { Column } from './records.tsx';

interface RemovalOptions<T> {
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

export interface Removal<T> {
  button: (row: T) => ReactNode;
  /** The last column of a list, with nothing but the button. */
  column: Column<T>;
  dialog: ReactNode;
}

export function useRemoval<T>(options: RemovalOptions<T>): Removal<T> {
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
    <Confirm
      title={`${action} “${nameOf(leaving)}”?`}
      action={action}
      onConfirm={() => confirm(leaving)}
      onClose={() => setLeaving(null)}
    >
      {warning(leaving)}
    </Confirm>
  );
  return { button, column: { name: '', cell: button }, dialog };
}
