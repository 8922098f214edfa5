// Deletes an item of a list: the button in its row, the confirmation dialog, the request, and a notification
// once it is done.

import { notifications } from '@mantine/notifications';
import { type QueryKey, useQueryClient } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';
import { remove } from '../api.ts';
import { ConfirmDialog } from './confirm-dialog.tsx';
import { type Column, RowButton } from './data-table.tsx';

interface DeleteOptions<T> {
  /** The label of the button. Default: "Delete". */
  action?: string | ((row: T) => string);
  nameOf: (row: T) => string;
  /** The title of the dialog. Default: the action and the name. */
  title?: (row: T) => string;
  /** What the action does, for the confirmation dialog. */
  warning: (row: T) => ReactNode;
  /** The path that the DELETE request is sent to. */
  pathOf: (row: T) => string;
  /** The queries to fetch again afterwards. */
  queryKeys: QueryKey[];
  /** The notification afterwards; none if it is omitted. */
  doneMessage?: (row: T) => string;
  onDeleted?: (row: T) => void;
  /** Called when the dialog closes, whether or not the row was deleted. */
  onClosed?: () => void;
  /** Why a row can't be deleted; null if it can. Shown instead of the button. */
  blockedReason?: (row: T) => string | null;
}

interface Deletion<T> {
  /** Opens the confirmation dialog. */
  ask: (row: T) => void;
  button: (row: T) => ReactNode;
  /** The last column of a list, with only the button in it. */
  column: Column<T>;
  dialog: ReactNode;
}

export function useDelete<T>(options: DeleteOptions<T>): Deletion<T> {
  const { action = 'Delete', nameOf, title, warning, blockedReason } = options;
  const actionOf = typeof action === 'function' ? action : () => action;
  const client = useQueryClient();
  const [asked, setAsked] = useState<T | null>(null);
  const button = (row: T) => {
    const reason = blockedReason?.(row) ?? null;
    if (reason !== null) return <span className="muted">{reason}</span>;
    return <RowButton action={actionOf(row)} name={nameOf(row)} onClick={() => setAsked(row)} />;
  };
  async function confirm(row: T) {
    await remove(options.pathOf(row));
    await Promise.all(options.queryKeys.map((queryKey) => client.invalidateQueries({ queryKey })));
    options.onDeleted?.(row);
    if (options.doneMessage) notifications.show({ message: options.doneMessage(row) });
  }
  function close() {
    setAsked(null);
    options.onClosed?.();
  }
  const dialog = asked !== null && (
    <ConfirmDialog
      title={title?.(asked) ?? `${actionOf(asked)} “${nameOf(asked)}”?`}
      action={actionOf(asked)}
      onConfirm={() => confirm(asked)}
      onClose={close}
    >
      {warning(asked)}
    </ConfirmDialog>
  );
  return { ask: setAsked, button, column: { name: '', cell: button }, dialog };
}
