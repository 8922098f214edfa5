// Search, sort and filters of a table whose rows are all in the browser. The choices are kept in the page's address.

import { useState } from 'react';
import { useLocation } from 'wouter';
import { type UrlState, useUrlState } from '../browser/url-state.ts';

/** What a column needs for search, sort and filters. */
export interface SearchedColumn<T> {
  /** The heading. Empty for a column of buttons. */
  name: string;
  /** What search finds and sorting compares. Without it, the column can't be sorted. */
  value?: (row: T) => string | number | null;
  /** True if the rows can be filtered by the column's values. */
  filter?: boolean;
}

/** Rows shown at first, and how many more the button adds. */
export const pageSize = 100;

export interface TableView<T> {
  /** The rows that match, in order; undefined while they load. */
  rows: T[] | undefined;
  /** How many of them to show. */
  limit: number;
  showMore: () => void;
  search: string;
  setSearch: (text: string) => void;
  sort: Sort | null;
  toggleSort: (column: string) => void;
  filters: TableFilter[];
  isFiltered: boolean;
  clear: () => void;
}

interface Sort {
  column: string;
  descending: boolean;
}

export interface TableFilter {
  name: string;
  value: string | null;
  options: string[];
  set: (value: string | null) => void;
}

/** `name` distinguishes the tables of one page in the address. */
export function useTableView<T>(
  rows: T[] | undefined,
  columns: SearchedColumn<T>[],
  name: string,
): TableView<T> {
  const [location] = useLocation();
  const urlState = useUrlState(location);
  const [limit, setLimit] = useState(pageSize);
  const key = (option: string) => `${name}${option}`;
  const search = urlState.get(key('q')) ?? '';
  const sort = toSort(urlState.get(key('sort')));
  const filters = columns
    .filter(({ filter }) => filter)
    .map((column) => toFilter(rows ?? [], column, urlState, key(toName(column))));
  const isFiltered = search !== '' || filters.some(({ value }) => value !== null);
  return {
    rows: rows && sortRows(filterRows(rows, columns, { search, filters }), columns, sort),
    limit,
    showMore: () => setLimit(limit + pageSize),
    search,
    setSearch: (text) => urlState.set({ [key('q')]: text || null }, { replace: true }),
    sort,
    toggleSort: (column) => urlState.set({ [key('sort')]: toNext(sort, column) }),
    filters,
    isFiltered,
    clear: () =>
      urlState.set({
        [key('q')]: null,
        ...Object.fromEntries(columns.map((column) => [key(toName(column)), null])),
      }),
  };
}

/** The name of a column in the address, e.g. `last-used`. */
const toName = ({ name }: { name: string }) => name.toLowerCase().replaceAll(/\W+/g, '-');

function toFilter<T>(
  rows: T[],
  column: SearchedColumn<T>,
  urlState: UrlState,
  key: string,
): TableFilter {
  const values = rows.map((row) => String(column.value?.(row) ?? ''));
  return {
    name: column.name,
    value: urlState.get(key),
    options: [...new Set(values)].filter(Boolean).sort(),
    set: (value) => urlState.set({ [key]: value }),
  };
}

/** `-name` sorts by the column in descending order. */
const toSort = (text: string | null): Sort | null =>
  text === null ? null : { column: text.replace(/^-/, ''), descending: text.startsWith('-') };

/** Ascending, then descending, then the order of the server. */
function toNext(sort: Sort | null, column: string): string | null {
  if (sort?.column !== column) return column;
  return sort.descending ? null : `-${column}`;
}

function filterRows<T>(
  rows: T[],
  columns: SearchedColumn<T>[],
  { search, filters }: { search: string; filters: TableFilter[] },
): T[] {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  const chosen = filters.filter(({ value }) => value !== null);
  if (words.length === 0 && chosen.length === 0) return rows;
  return rows.filter((row) => {
    const values = new Map(columns.map(({ name, value }) => [name, String(value?.(row) ?? '')]));
    const text = [...values.values()].join('\n').toLowerCase();
    return (
      words.every((word) => text.includes(word)) &&
      chosen.every(({ name, value }) => values.get(name) === value)
    );
  });
}

const byText = new Intl.Collator('en', { numeric: true });

function sortRows<T>(rows: T[], columns: SearchedColumn<T>[], sort: Sort | null): T[] {
  const value = columns.find(({ name }) => name === sort?.column)?.value;
  if (sort === null || value === undefined) return rows;
  const sign = sort.descending ? -1 : 1;
  return rows.toSorted((one, other) => {
    const [left, right] = [value(one), value(other)];
    // Rows without a value come last in both directions.
    if (left === null || right === null) return Number(left === null) - Number(right === null);
    if (typeof left === 'number' && typeof right === 'number') return sign * (left - right);
    return sign * byText.compare(String(left), String(right));
  });
}
