// Parses the value of an option that is a number.

import { InvalidArgumentError } from 'commander';

export function toNumber(text: string): number {
  const value = Number(text);
  if (text.trim() === '' || !Number.isFinite(value))
    throw new InvalidArgumentError('Give a number.');
  return value;
}
