// What a page shows, kept in its address, so that the back button undoes a choice and a link carries it.

import { useLocation } from 'wouter';

export interface UrlState {
  get(name: string): string | null;
  /** A null takes the choice away. */
  set(change: Record<string, string | null>): void;
}

/** The choices stand after the page's own path, e.g. `/usage/by=key&metric=cost`. */
export function useUrlState(page: string): UrlState {
  const [location, navigate] = useLocation();
  const choices = new URLSearchParams(location.slice(page.length + 1));
  return {
    get: (name) => choices.get(name),
    set(change) {
      for (const [name, value] of Object.entries(change)) {
        if (value === null) choices.delete(name);
        else choices.set(name, value);
      }
      const text = choices.toString();
      navigate(text === '' ? page : `${page}/${text}`);
    },
  };
}
