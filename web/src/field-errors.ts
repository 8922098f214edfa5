// What the cloud API says about one field of a request, in words. Its own sentences name members of JSON and regular
// expressions, because clients match on them.

import { explainPattern } from '#lib/schema/pattern-words.ts';
import { ApiError } from './api.ts';

export interface FieldError {
  /** The member of the request, e.g. `name` or `ssh_key_names`. */
  field: string;
  text: string;
}

const words: [RegExp, (group: string) => string][] = [
  [/^Field required$/, () => 'This is required.'],
  [/^String should have at most (\d+) character/, (most) => `Use at most ${most} characters.`],
  [/^String should have at least (\d+) character/, (least) => `Use at least ${least} characters.`],
  [/^List should have at most (\d+) item/, (most) => `Choose at most ${most}.`],
  [/^List should have at least (\d+) item/, (least) => `Choose at least ${least}.`],
  [/^String should match pattern '(.+)'$/s, (pattern) => `This must ${explainPattern(pattern)}.`],
  [/^Input should be (.+)$/s, (what) => `This should be ${what}.`],
];

/** Sentences about one field that do not name it as a member. */
const sentences: [RegExp, string][] = [
  [/^SSH key with name/, 'ssh_key_names'],
  [/^An SSH key is called/, 'name'],
  [/^Filesystem with name/, 'file_system_names'],
  [/^A filesystem is called/, 'name'],
];

/** Undefined if the error is about no single field. */
export function findFieldError(error: unknown): FieldError | undefined {
  if (!(error instanceof ApiError)) return undefined;
  const { message } = error;
  const [, path, problem = ''] = /^Error in request body at '([^']+)': (.+)$/s.exec(message) ?? [];
  if (path !== undefined) {
    return { field: path.split(/[.[]/)[0] ?? path, text: toWords(problem) };
  }
  const [, field] = sentences.find(([pattern]) => pattern.test(message)) ?? [];
  return field === undefined ? undefined : { field, text: message };
}

function toWords(problem: string): string {
  for (const [pattern, toText] of words) {
    const match = pattern.exec(problem);
    if (match !== null) return toText(match[1] ?? '');
  }
  return problem;
}

/** `ssh_key_names` becomes `Ssh key names`. */
export const toFieldName = (field: string) =>
  `${field.charAt(0).toUpperCase()}${field.slice(1).replaceAll('_', ' ')}`;
