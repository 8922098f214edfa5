// The bar above a table: search, filters, and how many rows match.

import { Button, Group, Select, Text, TextInput } from '@mantine/core';
import IconSearch from '@tabler/icons-react/dist/esm/icons/IconSearch.mjs';
import { toCount, toCounted } from '#lib/text/format.ts';
import type { TableView } from './table-view.ts';

interface TableToolbarProps<T> {
  label: string;
  view: TableView<T>;
  total: number;
}

export const TableToolbar = <T,>({ label, view, total }: TableToolbarProps<T>) => (
  <Group gap="xs" className="table-toolbar">
    <TextInput
      type="search"
      size="xs"
      aria-label={`Search ${label}`}
      placeholder="Search"
      maxLength={100}
      leftSection={<IconSearch size={14} stroke={1.8} aria-hidden />}
      value={view.search}
      onChange={({ currentTarget }) => view.setSearch(currentTarget.value)}
      className="table-search"
    />
    {view.filters
      .filter(({ options, value }) => options.length > 1 || value !== null)
      .map(({ name, options, value, set }) => (
        <Select
          key={name}
          size="xs"
          w={150}
          aria-label={`Filter ${label} by ${name}`}
          placeholder={`${name}: all`}
          data={options}
          value={value}
          onChange={set}
          clearable
          clearButtonProps={{ 'aria-label': `Clear the ${name} filter` }}
        />
      ))}
    {view.isFiltered && (
      <Button size="compact-xs" variant="subtle" onClick={view.clear}>
        Clear
      </Button>
    )}
    <Text size="xs" c="dimmed" ml="auto" role="status" className="tabular">
      {view.isFiltered ? `${toCount(view.rows?.length ?? 0)} of ` : ''}
      {toCounted(total, 'row')}
    </Text>
  </Group>
);
