// Converts tags between text, `key=value`, and the API's objects.

import type { Launch } from '#cloud/schema.ts';

export type Tag = NonNullable<Launch['tags']>[number];

/** The API's rule for keys. */
const keyPattern = /^[a-z][a-z0-9\-:]+$/;

export const maxTags = 50;

export function toTag(text: string): Tag {
  const at = text.indexOf('=');
  if (at === -1) return { key: text.trim(), value: '' };
  return { key: text.slice(0, at).trim(), value: text.slice(at + 1).trim() };
}

export const fromTag = ({ key, value }: Tag) => (value === '' ? key : `${key}=${value}`);

/** What is wrong with the tags; null if they are valid. */
export function findTagError(texts: string[]): string | null {
  const tags = texts.map(toTag);
  const invalid = tags.find(({ key }) => !keyPattern.test(key) || key.length > 55);
  if (invalid !== undefined) {
    return `“${invalid.key}” is not a valid tag key. Use 2 to 55 lowercase letters, digits, hyphens and colons, starting with a letter.`;
  }
  const long = tags.find(({ value }) => value.length > 128);
  if (long !== undefined) return `The value of “${long.key}” is longer than 128 characters.`;
  const twice = tags.find(({ key }, at) => tags.findIndex((one) => one.key === key) !== at);
  return twice === undefined ? null : `Tag “${twice.key}” is there twice.`;
}
