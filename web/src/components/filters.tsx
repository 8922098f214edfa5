// Filters of a list, kept in the page's address, and the button that loads more of the list.

import { Button, type ComboboxData, Group, Select } from '@mantine/core';
import type { ReactNode } from 'react';
import type { UrlState } from '../browser/url-state.ts';

interface Filter {
  /** The name in the address. */
  name: string;
  label: string;
  data: ComboboxData;
  /** Called as the user types, if the server does the searching. */
  onSearch?: (text: string) => void;
}

interface FiltersProps {
  urlState: UrlState;
  filters: Filter[];
  /** What else of the address changes with any filter. */
  reset?: Record<string, null>;
  children?: ReactNode;
}

export const Filters = ({ urlState, filters, reset = {}, children }: FiltersProps) => (
  <Group align="flex-end" gap="sm" className="filters">
    {filters.map(({ name, label, data, onSearch }) => (
      <Select
        key={name}
        label={label}
        placeholder="All"
        data={data}
        value={urlState.get(name)}
        onChange={(value) => urlState.set({ [name]: value, ...reset })}
        clearable
        clearButtonProps={{ 'aria-label': `Clear the ${label} filter` }}
        searchable
        {...(onSearch === undefined ? {} : { onSearchChange: onSearch })}
      />
    ))}
    {children}
  </Group>
);

interface LoadMoreProps {
  query: { hasNextPage: boolean; isFetchingNextPage: boolean; fetchNextPage: () => unknown };
}

export function LoadMore({ query }: LoadMoreProps) {
  if (!query.hasNextPage) return null;
  return (
    <Group>
      <Button
        variant="default"
        onClick={() => query.fetchNextPage()}
        loading={query.isFetchingNextPage}
      >
        Load more
      </Button>
    </Group>
  );
}
