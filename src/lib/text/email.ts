// The one spelling under which an email address is stored and looked up, and the one that people read.

import { domainToASCII, domainToUnicode } from 'node:url';

/**
 * Lower case, with an international domain in its ASCII form: browsers send only that, other
 * clients either. An accent that is a character of its own becomes one with its letter, as most
 * keyboards send it.
 */
export function toAddress(email: string): string {
  const at = email.lastIndexOf('@') + 1;
  const domain = email.slice(at);
  // An ASCII domain stays as it is: domainToASCII reads some of them as IPv4 addresses.
  const ascii = /^[\0-\x7f]*$/.test(domain) ? domain : domainToASCII(domain) || domain;
  return (email.slice(0, at) + ascii).normalize().toLowerCase();
}

/** What to look an address up by. Earlier versions stored accents and international domains as they were sent. */
export const toSpellings = (email: string): string[] => [toAddress(email), email.toLowerCase()];

/** For people to read, with an international domain in its own script. Other text is returned as it is. */
export function toReadable<T extends string | null>(email: T): T | string {
  const at = (email?.lastIndexOf('@') ?? -1) + 1;
  if (email === null || at === 0 || !email.includes('xn--', at)) return email;
  return email.slice(0, at) + (domainToUnicode(email.slice(at)) || email.slice(at));
}
