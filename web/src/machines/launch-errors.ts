// Maps what the cloud API says about a field of a launch to the field of the page, in words. The API's own sentences name
// members of JSON, which the page does not show.

import { ApiError } from '../api.ts';

/** By member of the launch, e.g. `name`. */
export type FieldErrors = Partial<Record<string, string>>;

const words: [RegExp, (...groups: string[]) => string][] = [
  [/^Field required$/, () => 'This is required.'],
  [/^String should have at most (\d+) character/, (most) => `Use at most ${most} characters.`],
  [/^String should have at least (\d+) character/, (least) => `Use at least ${least} characters.`],
  [/^List should have at most (\d+) item/, (most) => `Choose at most ${most}.`],
  [/^List should have at least (\d+) item/, (least) => `Choose at least ${least}.`],
  [/^String should match pattern/, () => 'This has characters that are not allowed here.'],
  [/^Input should be (.+)$/, (what) => `This should be ${what.replace(/^a valid /, 'a ')}.`],
];

/** Other sentences that are about one field. */
const sentences: [RegExp, string][] = [
  [/^SSH key with name/, 'ssh_key_names'],
  [/user.data/i, 'user_data'],
  [/^Filesystem with name/, 'file_system_names'],
];

/** Empty if the error is about no field that the page marks. */
export function toFieldErrors(error: unknown): FieldErrors {
  if (!(error instanceof ApiError) || error.status < 400 || error.status > 404) return {};
  const [, path = '', problem = ''] =
    /^Error in request body at '([^']+)': (.+)$/s.exec(error.message) ?? [];
  const field = path.split(/[.[]/)[0] ?? '';
  if (field !== '') return marked.has(field) ? { [field]: toWords(problem) } : {};
  const [, named] = sentences.find(([pattern]) => pattern.test(error.message)) ?? [];
  return named !== undefined && marked.has(named) ? { [named]: error.message } : {};
}

const marked = new Set(['name', 'ssh_key_names', 'tags', 'user_data']);

export function toWords(problem: string): string {
  for (const [pattern, toText] of words) {
    const [, ...groups] = pattern.exec(problem) ?? [];
    if (pattern.test(problem)) return toText(...groups);
  }
  return problem;
}
