// A list as a table. Where there is little room its rows become cards. While it loads it shows a skeleton,
// and when it is empty an empty state. If a later fetch fails, the rows stay, in grey, under the error.

import { Button, Paper, Skeleton, Stack, Text, Title } from '@mantine/core';
import type { UseQueryResult } from '@tanstack/react-query';
import type { MouseEventHandler, ReactNode } from 'react';
import { ErrorNotice } from './error-notice.tsx';
import './data-table.css';

export interface Column<T> {
  /** The heading. Empty for a column of buttons. */
  name: string;
  cell: (row: T) => ReactNode;
  /** Right-aligned, with digits of equal width. */
  isNumber?: boolean;
}

interface DataTableProps<T> {
  /** The name of the table for screen readers. */
  label: string;
  /** The query that loads the rows. Omitted if the rows are there already. */
  query?: Pick<UseQueryResult<unknown>, 'isPending' | 'error' | 'refetch'>;
  /** Undefined while they load. */
  rows: T[] | undefined;
  columns: Column<T>[];
  /** Rows of the skeleton. A likely count keeps the page from jumping when the rows arrive. Default: 3. */
  skeletonRows?: number;
  /** Lines of text in each row of the skeleton. Default: 1. */
  skeletonLines?: number;
  empty: ReactNode;
}

export function DataTable<T extends { id: string }>(props: DataTableProps<T>) {
  const { label, query, rows, columns, skeletonRows = 3, skeletonLines = 1, empty } = props;
  if (query?.error && rows === undefined) {
    return <ErrorNotice error={query.error} onRetry={() => query.refetch()} />;
  }
  const stale = query?.error && <ErrorNotice error={query.error} onRetry={() => query.refetch()} />;
  if (rows?.length === 0) {
    return (
      <>
        {stale}
        {empty}
      </>
    );
  }
  return (
    <>
      {stale}
      <Paper
        withBorder
        className="data-table-frame"
        data-many={columns.length > 5 || undefined}
        data-stale={stale ? true : undefined}
      >
        <table className="data-table" aria-label={label} aria-busy={rows === undefined}>
          <thead>
            <tr>
              {columns.map(({ name, isNumber }) => (
                <th key={name} scope="col" className={isNumber ? 'number' : undefined}>
                  {name || <span className="visually-hidden">Actions</span>}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows === undefined
              ? Array.from({ length: skeletonRows }, (_, row) => row).map((row) => (
                  <tr key={row}>
                    {columns.map(({ name }) => (
                      <td key={name} data-label={name || undefined}>
                        <Skeleton h={skeletonLines * 20 - 2} w="70%" />
                      </td>
                    ))}
                  </tr>
                ))
              : rows.map((row) => (
                  <tr key={row.id}>
                    {columns.map(({ name, cell, isNumber }) => (
                      <td
                        key={name}
                        data-label={name || undefined}
                        className={isNumber ? 'number' : undefined}
                      >
                        {cell(row)}
                      </td>
                    ))}
                  </tr>
                ))}
          </tbody>
        </table>
      </Paper>
    </>
  );
}

/** The cell that names its row, with details below the name. */
export const NameCell = ({ name, children }: { name: string; children?: ReactNode }) => (
  <div>
    {/* A short id or name is never broken. */}
    <Text size="sm" fw={500} className="breakable" miw="10ch">
      {name}
    </Text>
    {children}
  </div>
);

interface RowButtonProps {
  /** The label, e.g. "Edit". */
  action: string;
  /** What the row is called: screen readers say it after the label. */
  name: string;
  onClick: MouseEventHandler;
  loading?: boolean;
  title?: string | undefined;
}

export const RowButton = ({ action, name, ...props }: RowButtonProps) => (
  <Button variant="default" size="xs" aria-label={`${action} ${name}`} {...props}>
    {action}
  </Button>
);

interface EmptyStateProps {
  title: string;
  children: ReactNode;
  action?: ReactNode;
}

export const EmptyState = ({ title, children, action }: EmptyStateProps) => (
  <Paper withBorder p={{ base: 'lg', sm: 'xl' }}>
    <Stack gap="sm" align="flex-start" maw={560}>
      <Title order={2} size="h4">
        {title}
      </Title>
      <Text c="dimmed">{children}</Text>
      {action}
    </Stack>
  </Paper>
);
