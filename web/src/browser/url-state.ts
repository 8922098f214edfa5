// Filters and options of a page, kept in its address: the back button undoes a choice, and a link shares it.

import { useLocation } from 'wouter';

export interface UrlState {
  get(name: string): string | null;
  /** A null removes a value. */
  set(change: Record<string, string | null>): void;
}

/** The values follow the page's path, e.g. `/usage/by=key&metric=cost`. */
export function useUrlState(page: string): UrlState {
  const [location, navigate] = useLocation();
  const values = new URLSearchParams(location.slice(page.length + 1));
  return {
    get: (name) => values.get(name),
    set(change) {
      for (const [name, value] of Object.entries(change)) {
        if (value === null) values.delete(name);
        else values.set(name, value);
      }
      const text = values.toString();
      navigate(text === '' ? page : `${page}/${text}`);
    },
  };
}
