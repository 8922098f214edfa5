// A list as a table, which becomes cards where it has little room; its shape while it loads; its words when
// it is empty.

import { Paper, Skeleton, Stack, Text, Title } from '@mantine/core';
import type { UseQueryResult } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { ErrorNotice } from './error-notice.tsx';

export interface Column<T> {
  /** EmptyState for a column of buttons. */
  name: string;
  cell: (row: T) => ReactNode;
  /** Stands under its fellows digit by digit. */
  isNumber?: boolean;
}

interface DataTableProps<T> {
  /** What the table holds, for those who hear it. */
  label: string;
  query: Pick<UseQueryResult<unknown>, 'isPending' | 'error' | 'refetch'>;
  rows: T[] | undefined;
  columns: Column<T>[];
  /** How many rows are likely, so that little moves when they arrive. */
  likely?: number;
  /** How many lines each of them likely has. */
  lines?: number;
  empty: ReactNode;
}

export function DataTable<T extends { id: string }>(props: DataTableProps<T>) {
  const { label, query, rows, columns, likely = 3, lines = 1, empty } = props;
  if (query.error && rows === undefined) {
    return <ErrorNotice error={query.error} onRetry={() => query.refetch()} />;
  }
  if (rows?.length === 0) return empty;
  return (
    <Paper withBorder className="records-frame" data-many={columns.length > 5 || undefined}>
      <table className="records" aria-label={label} aria-busy={rows === undefined}>
        <thead>
          <tr>
            {columns.map(({ name, isNumber }) => (
              <th key={name} scope="col" className={isNumber ? 'number' : undefined}>
                {name || <span className="only-heard">Actions</span>}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows === undefined
            ? Array.from({ length: likely }, (_, row) => row).map((row) => (
                <tr key={row}>
                  {columns.map(({ name }) => (
                    <td key={name} data-label={name || undefined}>
                      <Skeleton h={lines * 20 - 2} w="70%" />
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
  );
}

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
