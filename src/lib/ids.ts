// Identifiers in the APIs' formats, from the system's random source.

import { randomBytes, randomUUID } from 'node:crypto';

/** 32 lower-case hex digits: a UUID without dashes. */
export const newId = (): string => randomUUID().replaceAll('-', '');

/** Ids for many short-lived things: as unlikely to collide, at a tenth of the cost. */
export function createIdSequence(): () => string {
  const prefix = randomBytes(10).toString('hex');
  let count = 0;
  return () => prefix + (count++).toString(16).padStart(12, '0');
}

const alphanumerics = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';

/** Unbiased: bytes from 248 on, the last multiple of 62, are discarded. */
export function randomAlphanumerics(length: number): string {
  let text = '';
  while (text.length < length) {
    for (const byte of randomBytes(length * 2)) {
      if (byte < 248 && text.length < length) text += alphanumerics[byte % 62];
    }
  }
  return text;
}
