// What the APIs say about one field of a request, in words. The cloud API's own sentences name members of JSON and
// regular expressions, because clients match on them. The dashboard's API names the member beside its sentence.

import { explainPattern } from '#lib/schema/pattern-words.ts';

export interface FieldError {
  /** Where the member is in the request, e.g. `['rules', '2', 'source_network']`. */
  path: string[];
  text: string;
}

/** An error about one field that a form finds before it sends the request. */
export class FieldProblem extends Error {
  readonly param: string;

  constructor(param: string, message: string) {
    super(message);
    this.param = param;
  }
}

const words: [RegExp, (group: string) => string][] = [
  [/^Field required$/, () => 'This is required.'],
  [/^String should have at most (\d+) character/, (most) => `Use at most ${most} characters.`],
  [/^String should have at least (\d+) character/, (least) => `Use at least ${least} characters.`],
  [/^List should have at most (\d+) item/, (most) => `Choose at most ${most}.`],
  [/^List should have at least (\d+) item/, (least) => `Choose at least ${least}.`],
  [/^String should match pattern '(.+)'$/s, (pattern) => `This must ${explainPattern(pattern)}.`],
  [/^Input should be less than or equal to (.+)$/, (most) => `This must be at most ${most}.`],
  [/^Input should be greater than or equal to (.+)$/, (least) => `This must be at least ${least}.`],
  [/^Input should be (.+)$/s, (what) => `This should be ${what}.`],
  [/^Input is (.+)$/s, (what) => `This is ${what}.`],
];

/** Sentences about one field that do not name it as a member. */
const sentences: [RegExp, string][] = [
  [/^SSH key with name/, 'ssh_key_names'],
  [/^An SSH key is called/, 'name'],
  [/^Filesystem with name/, 'file_system_names'],
  [/^A filesystem is called/, 'name'],
  [/^There is a deployment called/, 'name'],
];

/** Undefined if the error is about no single field. */
export function findFieldError(error: unknown): FieldError | undefined {
  if (!(error instanceof Error)) return undefined;
  const { message, param } = error as Error & { param?: string | null };
  if (param) {
    const path = toPath(param);
    const text = message.startsWith(`${param} `)
      ? `${toSubject(path)}${message.slice(param.length)}`
      : message;
    return { path, text };
  }
  const [, member, problem = ''] =
    /^Error in request body at '([^']+)': (.+)$/s.exec(message) ?? [];
  if (member !== undefined) return { path: toPath(member), text: toWords(problem) };
  const [, field] = sentences.find(([pattern]) => pattern.test(message)) ?? [];
  return field === undefined ? undefined : { path: [field], text: message };
}

/** Names a member that the user named, such as a header. */
function toSubject(path: readonly string[]): string {
  const last = path.at(-1) ?? '';
  return /^[a-z_]+$|^\d+$/.test(last) ? 'This' : `“${last}”`;
}

/** Splits `rules[2].source_network`. */
const toPath = (member: string) => member.split(/[.[\]]+/).filter((part) => part !== '');

function toWords(problem: string): string {
  for (const [pattern, toText] of words) {
    const match = pattern.exec(problem);
    if (match !== null) return toText(match[1] ?? '');
  }
  return `${problem.charAt(0).toUpperCase()}${problem.slice(1).replace(/\.$/, '')}.`;
}

/** `['limits', 'monthly_budget']` becomes `Monthly budget`. */
export function toFieldName(path: readonly string[]): string {
  const name = (path.findLast((part) => !/^\d+$/.test(part)) ?? '').replaceAll('_', ' ');
  return `${name.charAt(0).toUpperCase()}${name.slice(1)}`;
}
