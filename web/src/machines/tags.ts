// Tags as people type them, `key=value`, and as the API has them.

import type { Launch } from '#cloud/schema.ts';

export type Tag = NonNullable<Launch['tags']>[number];

/** As the API has it. */
const keyForm = /^[a-z][a-z0-9\-:]+$/;

export const maxTags = 50;

export function toTag(text: string): Tag {
  const at = text.indexOf('=');
  if (at === -1) return { key: text.trim(), value: '' };
  return { key: text.slice(0, at).trim(), value: text.slice(at + 1).trim() };
}

export const fromTag = ({ key, value }: Tag) => (value === '' ? key : `${key}=${value}`);

/** What is wrong with them, in a sentence; null when they are fine. */
export function findTagError(texts: string[]): string | null {
  const tags = texts.map(toTag);
  const misspelt = tags.find(({ key }) => !keyForm.test(key) || key.length > 55);
  if (misspelt !== undefined) {
    return `“${misspelt.key}” can’t be a tag: small letters, digits, - and : only, at least two, a letter first.`;
  }
  const long = tags.find(({ value }) => value.length > 128);
  if (long !== undefined) return `The value of “${long.key}” is over 128 characters.`;
  const twice = tags.find(({ key }, at) => tags.findIndex((one) => one.key === key) !== at);
  return twice === undefined ? null : `“${twice.key}” is there twice.`;
}
