// What the APIs say about one field of a request, in words. The dashboard's API names the member beside its sentence.

import { findMemberProblem, toMemberPath } from '#lib/schema/problem-words.ts';

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
    const path = toMemberPath(param);
    const text = message.startsWith(`${param} `)
      ? `${toSubject(path)}${message.slice(param.length)}`
      : message;
    return { path, text };
  }
  const problem = findMemberProblem(message);
  if (problem !== undefined) return { path: toMemberPath(problem.member), text: problem.text };
  const [, field] = sentences.find(([pattern]) => pattern.test(message)) ?? [];
  return field === undefined ? undefined : { path: [field], text: message };
}

/** Names a member that the user named, such as a header. */
function toSubject(path: readonly string[]): string {
  const last = path.at(-1) ?? '';
  return /^[a-z_]+$|^\d+$/.test(last) ? 'This' : `“${last}”`;
}
