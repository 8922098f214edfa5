// A list as a table with search, sort and filters. Where there is little room its rows become cards. While it loads
// it shows a skeleton, and when it is empty an empty state. If a later fetch fails, the rows stay, in grey, under the
// error.

import { Button, Paper, Skeleton, Text } from '@mantine/core';
import IconChevronDown from '@tabler/icons-react/dist/esm/icons/IconChevronDown.mjs';
import IconChevronUp from '@tabler/icons-react/dist/esm/icons/IconChevronUp.mjs';
import type { UseQueryResult } from '@tanstack/react-query';
import type { KeyboardEvent, MouseEvent, MouseEventHandler, ReactNode } from 'react';
import { Link } from 'wouter';
import { ErrorNotice } from './error-notice.tsx';
import { TableToolbar } from './table-toolbar.tsx';
import { pageSize, type SearchedColumn, type TableView, useTableView } from './table-view.ts';
import './data-table.css';

export interface Column<T> extends SearchedColumn<T> {
  cell: (row: T) => ReactNode;
  /** Right-aligned, with digits of equal width. */
  isNumber?: boolean;
}

interface DataTableProps<T> {
  /** The name of the table for screen readers. */
  label: string;
  /** Tells tables of one page apart in the address. */
  name?: string;
  /** The query that loads the rows. Omitted if the rows are there already. */
  query?: Pick<UseQueryResult<unknown>, 'isPending' | 'error' | 'refetch'> & {
    /** True if the server has more rows: what is here can't be searched or sorted as a whole. */
    hasNextPage?: boolean;
  };
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
  const { label, name = '', query, rows, columns, empty } = props;
  const view = useTableView(rows, columns, name);
  const isWhole = query?.hasNextPage !== true && columns.some(({ value }) => value !== undefined);
  const notice = query?.error && (
    <ErrorNotice error={query.error} onRetry={() => query.refetch()} />
  );
  if (notice && rows === undefined) return notice;
  if (rows?.length === 0) {
    return (
      <>
        {notice}
        {empty}
      </>
    );
  }
  const shown = isWhole ? view.rows : rows;
  const total = rows?.length ?? 0;
  return (
    <>
      {notice}
      <Paper
        withBorder
        className="data-table-frame"
        data-many={columns.length > 5 || undefined}
        data-stale={notice ? true : undefined}
      >
        {isWhole && (total > 1 || view.isFiltered) && (
          <TableToolbar label={label} view={view} total={total} />
        )}
        <table
          className="data-table"
          aria-label={label}
          aria-busy={rows === undefined}
          onKeyDown={moveFocus}
        >
          <Head columns={columns} view={isWhole && total > 1 ? view : null} />
          <tbody>
            {shown === undefined ? (
              <SkeletonRows {...props} />
            ) : (
              shown.slice(0, view.limit).map((row) => <Row key={row.id} row={row} of={columns} />)
            )}
          </tbody>
        </table>
        {shown?.length === 0 && (
          <Text size="sm" c="dimmed" ta="center" py="lg">
            Nothing matches.
          </Text>
        )}
      </Paper>
      {shown && shown.length > view.limit && (
        <Button variant="default" onClick={view.showMore} className="show-more">
          Show {Math.min(pageSize, shown.length - view.limit)} more
        </Button>
      )}
    </>
  );
}

/** Without a view, the columns can't be sorted. */
function Head<T>({ columns, view }: { columns: Column<T>[]; view: TableView<T> | null }) {
  return (
    <thead>
      <tr>
        {columns.map(({ name, isNumber, value }) => {
          const sort = view?.sort?.column === name ? view.sort : null;
          const Icon = sort?.descending ? IconChevronDown : IconChevronUp;
          return (
            <th
              key={name}
              scope="col"
              className={isNumber ? 'number' : undefined}
              {...(sort && { 'aria-sort': sort.descending ? 'descending' : 'ascending' })}
            >
              {view !== null && value !== undefined ? (
                <button type="button" className="sort-button" onClick={() => view.toggleSort(name)}>
                  {name}
                  <Icon size={12} stroke={2} aria-hidden />
                </button>
              ) : (
                name || <span className="visually-hidden">Actions</span>
              )}
            </th>
          );
        })}
      </tr>
    </thead>
  );
}

function Row<T>({ row, of: columns }: { row: T; of: Column<T>[] }) {
  return (
    <tr onClick={openLink}>
      {columns.map(({ name, cell, isNumber }) => (
        <td key={name} data-label={name || undefined} className={isNumber ? 'number' : undefined}>
          {cell(row)}
        </td>
      ))}
    </tr>
  );
}

const SkeletonRows = <T,>(props: DataTableProps<T>) =>
  Array.from({ length: props.skeletonRows ?? 3 }, (_, row) => row).map((row) => (
    <tr key={row}>
      {props.columns.map(({ name }) => (
        <td key={name} data-label={name || undefined}>
          <Skeleton h={(props.skeletonLines ?? 1) * 20 - 2} w="70%" />
        </td>
      ))}
    </tr>
  ));

/** A click anywhere in a row follows the link of its name, unless it is on something else or selects text. */
function openLink(event: MouseEvent<HTMLTableRowElement>): void {
  const target = event.target as Element;
  if (target.closest('a, button, input, label, [role="menu"]') || !getSelection()?.isCollapsed) {
    return;
  }
  // A click in a menu or dialog of the row arrives here as well, though it is elsewhere on the page.
  if (!event.currentTarget.contains(target)) return;
  event.currentTarget.querySelector<HTMLAnchorElement>('.row-link')?.click();
}

/** The arrow keys move between the links of the rows. */
function moveFocus(event: KeyboardEvent<HTMLTableElement>): void {
  if (event.key !== 'ArrowDown' && event.key !== 'ArrowUp') return;
  const links = [...event.currentTarget.querySelectorAll<HTMLElement>('.row-link')];
  const index = links.indexOf(event.target as HTMLElement);
  if (index === -1) return;
  event.preventDefault();
  links[index + (event.key === 'ArrowDown' ? 1 : -1)]?.focus();
}

interface NameCellProps {
  name: string;
  /** The page that the row opens. */
  href?: string | undefined;
  children?: ReactNode;
}

/** The cell that names its row, with details below the name. */
export const NameCell = ({ name, href, children }: NameCellProps) => (
  <div>
    {/* A short id or name is never broken. */}
    <Text size="sm" fw={500} className="breakable" miw="10ch">
      {href === undefined ? (
        name
      ) : (
        <Link href={href} className="row-link">
          {name}
        </Link>
      )}
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
