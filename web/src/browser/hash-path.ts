// The current page from the address after the `#`. `#/usage?by=key` is the same as `#/usage/by=key`, the form in
// which pages write their options, because people write links the first way.

import type { BaseLocationHook } from 'wouter';
import { useHashLocation } from 'wouter/use-hash-location';

export const useHashPath: BaseLocationHook = (options) => {
  const [location, navigate] = useHashLocation(options);
  return [location.replace('?', '/').replace(/\/\/+/, '/'), navigate];
};
useHashPath.hrefs = (href: string) => `#${href}`;
