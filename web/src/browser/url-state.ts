// Filters and options of a page, kept in its address: the back button undoes a choice, and a link shares it.

import { useHashLocation } from 'wouter/use-hash-location';
import { splitAddress } from './hash-path.ts';

export interface UrlState {
  get(name: string): string | null;
  /** A null removes a value. `replace` adds no step to the history, e.g. for each letter of a search. */
  set(change: Record<string, string | null>, options?: { replace: boolean }): void;
}

/** The values follow the page's path, e.g. `/usage/by=key&metric=cost`. */
export function useUrlState(page: string): UrlState {
  const [location, navigate] = useHashLocation();
  const values = new URLSearchParams(splitAddress(location).options);
  return {
    get: (name) => values.get(name),
    set(change, options = { replace: false }) {
      for (const [name, value] of Object.entries(change)) {
        if (value === null) values.delete(name);
        else values.set(name, value);
      }
      const text = values.toString();
      const base = page === '/' ? '' : page;
      navigate(text === '' ? page : `${base}/${text}`, options);
    },
  };
}
