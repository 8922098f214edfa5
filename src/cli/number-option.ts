// Parses the value of an option that is a number.

import { InvalidArgumentError } from 'commander';

export function toWholeNumber(text: string): number {
  const value = toNumber(text);
  if (!Number.isInteger(value)) throw new InvalidArgumentError('Give a whole number.');
  return value;
}

export function toNumber(text: string): number {
  const value = Number(text);
  if (text.trim() === '' || !Number.isFinite(value))
    throw new InvalidArgumentError('Give a number.');
  return value;
}
