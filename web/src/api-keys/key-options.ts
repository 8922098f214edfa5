// The options of a filter by API key. The server searches: an account may have thousands of keys.

import { useDebouncedValue } from '@mantine/hooks';
import { useState } from 'react';
import { useApiKeys } from '../queries.ts';

const delayMs = 300;

/** The options always include the chosen key. */
export function useKeyOptions(chosen: string | null) {
  const [text, onSearch] = useState('');
  const [search] = useDebouncedValue(text.trim().slice(0, 64), delayMs);
  const found = useApiKeys(search).data ?? [];
  const own = useApiKeys(chosen ?? '').data ?? [];
  const keys = new Map(
    [...own.filter(({ id }) => id === chosen), ...found].map((key) => [key.id, key]),
  );
  return { data: [...keys.values()].map(({ id, label }) => ({ value: id, label })), onSearch };
}
