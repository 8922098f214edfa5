// The address after the `#`: the path of the page, and behind it the page's options. `#/usage?by=key` is the same as
// `#/usage/by=key`, the form in which pages write their options, because people write links the first way.

import type { BaseLocationHook } from 'wouter';
import { useHashLocation } from 'wouter/use-hash-location';

/** The path without options, so that routes match whatever the options are. */
export const useHashPath: BaseLocationHook = (options) => {
  const [location, navigate] = useHashLocation(options);
  return [splitAddress(location).path, navigate];
};
useHashPath.hrefs = (href: string) => `#${href}`;

/** The options are a last part of the path with a `=` in it, e.g. `by=key&metric=cost`. */
export function splitAddress(location: string): { path: string; options: string } {
  const normal = location.replace('?', '/').replace(/\/\/+/, '/');
  const [, path = normal, options = ''] = /^(.*)\/([^/]*=[^/]*)$/.exec(normal) ?? [];
  return { path: path || '/', options };
}
